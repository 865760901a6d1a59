package providertest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/providertest"
)

// response is what tests read of an answer of Responses.
type response struct {
	ID, Status string
	Output     []struct {
		Type    string
		CallID  string `json:"call_id"`
		Content []struct{ Text string }
	}
	Usage *struct {
		Total int `json:"total_tokens"`
	}
}

func (w *world) respond(body string) response {
	w.t.Helper()
	status, answer, _ := w.post("/v1/responses", body)
	if status != http.StatusOK {
		w.t.Fatalf("%d: %s", status, answer)
	}
	return w.response(answer)
}

func (w *world) response(answer string) (r response) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(answer), &r); err != nil {
		w.t.Fatalf("%v: %s", err, answer)
	}
	return r
}

// ask sends a request without a body.
func (w *world) ask(method, path string) (status int, answer string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.URL()+path, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.Key())
	resp, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// until polls an answer until it has a status.
func (w *world) until(id, status string) response {
	w.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		code, answer := w.ask(http.MethodGet, "/v1/responses/"+id)
		r := w.response(answer)
		if code == http.StatusOK && r.Status == status {
			return r
		}
		if code != http.StatusOK || r.Status != "queued" && r.Status != "in_progress" {
			w.t.Fatalf("%d %s, not %s", code, answer, status)
		}
		select {
		case <-tick.C:
		case <-w.t.Context().Done():
			w.t.Fatal("timed out")
		}
	}
}

// A request continues an answer that is stored, whose calls must have got their outputs.
func TestResponsesContinues(t *testing.T) {
	t.Parallel()
	var seen []int
	w := open(t, providertest.Config{Reply: func(q providertest.Query) providertest.Answer {
		seen = append(seen, len(q.Messages))
		if q.Messages[len(q.Messages)-1].Text() == "call" {
			return providertest.Answer{Content: []abi.ContentBlock{{Type: abi.BlockThinking, Text: "hm"}}, Calls: []abi.ToolCall{{ID: "c1", Name: "add"}, {ID: "c2", Name: "add"}}}
		}
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text("done")}}
	}})
	const outs = `{"type":"function_call_output","call_id":"c1","output":"1"},{"type":"function_call_output","call_id":"c2","output":"2"}`
	first := w.respond(`{"model":"gpt-5","input":"call"}`)
	if status, answer := w.ask(http.MethodGet, "/v1/responses/"+first.ID); status != http.StatusOK || w.response(answer).Status != "completed" {
		t.Errorf("%d %s", status, answer)
	}
	next := func(before, items string) string {
		return `{"model":"gpt-5","previous_response_id":"` + before + `","input":[` + items + `]}`
	}
	w.rejects(responsesPath, []rejection{
		{"an output is missing", next(first.ID, outs[:strings.Index(outs, "},{")+1]), 0, "No tool output found for function call c2."},
		{"both are missing", next(first.ID, `{"role":"user","content":"go on"}`), 0, "No tool output found for function call c1."},
		{"two histories", `{"model":"gpt-5","input":"a","previous_response_id":"` + first.ID + `","conversation":"conv_1"}`, 0, "only providing one of"},
		{"no conversation", `{"model":"gpt-5","input":"a","conversation":{"id":"conv_1"}}`, 404, "Conversation with id 'conv_1' not found."},
		{"not stored in the background", `{"model":"gpt-5","input":"a","background":true,"store":false}`, 0, "requires 'store'"},
	})
	second := w.respond(next(first.ID, outs))
	w.respond(next(second.ID, `{"role":"user","content":"more"}`))
	w.respond(next(first.ID, outs)) // a fork
	if want := []int{1, 4, 6, 4}; len(seen) != len(want) || seen[1] != want[1] || seen[2] != want[2] || seen[3] != want[3] {
		t.Errorf("the model saw %v messages", seen)
	}
	loose := w.respond(`{"model":"gpt-5","input":"hello","store":false}`)
	w.rejects(responsesPath, []rejection{{"not stored", next(loose.ID, `{"role":"user","content":"more"}`), 0, "not found"}})
}

// A conversation has the items of all its requests and answers.
func TestResponsesConverses(t *testing.T) {
	t.Parallel()
	last := 0
	w := open(t, providertest.Config{Reply: func(q providertest.Query) providertest.Answer {
		last = len(q.Messages)
		if q.N == 1 {
			return providertest.Answer{Calls: []abi.ToolCall{{ID: "c1", Name: "add"}}}
		}
		return providertest.Answer{}
	}})
	status, answer, _ := w.post("/v1/conversations", "{}")
	id := w.response(answer).ID
	if status != http.StatusOK || id == "" {
		t.Fatalf("%d %s", status, answer)
	}
	in := func(items string) string {
		return `{"model":"gpt-5","conversation":"` + id + `","input":[` + items + `]}`
	}
	w.respond(in(`{"role":"user","content":"add"}`))
	w.rejects(responsesPath, []rejection{{"no output", in(`{"role":"user","content":"more"}`), 0, "No tool output found for function call c1."}})
	w.respond(in(`{"type":"function_call_output","call_id":"c1","output":"1"}`))
	if last != 3 {
		t.Errorf("the model saw %d messages", last)
	}
}

// An answer in the background is queued, polled, streamed, cancelled, and fails where the model does.
func TestResponsesLater(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	w := open(t, providertest.Config{Reply: func(q providertest.Query) providertest.Answer {
		switch q.Messages[0].Text() {
		case "wait":
			<-release
		case "fail":
			return providertest.Answer{Fault: &providertest.Fault{Status: 500}}
		case "cut":
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("a b c")}, Fault: &providertest.Fault{CutAfter: 1}}
		}
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text("done")}}
	}})
	body := func(text string) string { return `{"model":"gpt-5","input":"` + text + `","background":true}` }
	held := w.respond(body("wait"))
	if held.Status != "queued" || len(held.Output) != 0 || len(w.Bills()) != 0 {
		t.Fatalf("%+v, %v", held, w.Bills())
	}
	w.rejects(responsesPath, []rejection{{"continued too early", `{"model":"gpt-5","input":"a","previous_response_id":"` + held.ID + `"}`, 0, "not found"}})
	gone := w.respond(body("wait"))
	for range 2 {
		if status, answer, _ := w.post("/v1/responses/"+gone.ID+"/cancel", ""); status != http.StatusOK || w.response(answer).Status != "cancelled" {
			t.Errorf("%d %s", status, answer)
		}
	}
	close(release)
	done := w.until(held.ID, "completed")
	if done.Usage == nil || done.Usage.Total == 0 || len(done.Output) != 1 || done.Output[0].Content[0].Text != "done" {
		t.Errorf("%+v", done)
	}
	for after, first := range map[string]string{"": "response.created", "&starting_after=1": "response.in_progress"} {
		if status, answer := w.ask(http.MethodGet, "/v1/responses/"+held.ID+"?stream=true"+after); status != http.StatusOK || !strings.HasPrefix(answer, "event: "+first) || !strings.Contains(answer, "response.completed") {
			t.Errorf("%d %s", status, answer)
		}
	}
	w.until(w.respond(body("fail")).ID, "failed")
	w.until(w.respond(body("cut")).ID, "failed")
	if status, answer, _ := w.post(responsesPath, strings.Replace(body("hello"), "{", `{"stream":true,`, 1)); status != http.StatusOK || !strings.Contains(answer, "response.queued") {
		t.Errorf("%d %s", status, answer)
	}
	now := w.respond(`{"model":"gpt-5","input":"hello"}`)
	if status, answer, _ := w.post("/v1/responses/"+now.ID+"/cancel", ""); status != http.StatusBadRequest || !strings.Contains(answer, "Cannot cancel a synchronous response.") {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer := w.ask(http.MethodGet, "/v1/responses/resp_nope"); status != http.StatusNotFound || !strings.Contains(answer, "Response with id 'resp_nope' not found.") {
		t.Errorf("%d %s", status, answer)
	}
}
