package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/internal/agui/aguitest"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// aguiEvent is one of a stream in the format of AG-UI.
type aguiEvent struct {
	id   string
	data map[string]any
}

// agui reads a stream in the format of AG-UI to its end, and verifies it.
func (w *world) agui(method, path, body string, header ...string) (list []aguiEvent) {
	w.t.Helper()
	s := w.stream(method, path, body, header...)
	id := ""
	for s.scan.Scan() {
		name, value, _ := strings.Cut(s.scan.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "data":
			e := aguiEvent{id: id}
			must(w.t, json.Unmarshal([]byte(value), &e.data))
			list, id = append(list, e), ""
		case "event":
			w.t.Errorf("event %s has a name", value)
		}
	}
	must(w.t, s.scan.Err())
	if err := aguitest.Verify(plainly(list)); err != nil {
		w.t.Errorf("%s %s: %v in\n%s", method, path, err, kinds(list))
	}
	return list
}

// aguiAll reads the events of a run after one of them.
func (w *world) aguiAll(run, after string) []aguiEvent {
	w.t.Helper()
	return w.agui(http.MethodGet, "/v1/runs/"+run+"/events?format=ag-ui", "", "Last-Event-ID", after)
}

func plainly(list []aguiEvent) (out []map[string]any) {
	for _, e := range list {
		out = append(out, e.data)
	}
	return out
}

// kinds are the types of events, without those of phases.
func kinds(list []aguiEvent) string {
	var out []string
	for _, e := range list {
		switch {
		case e.data["name"] == "mortise.phase":
		case e.data["type"] == "CUSTOM":
			out = append(out, fmt.Sprint(e.data["name"]))
		default:
			out = append(out, fmt.Sprint(e.data["type"]))
		}
	}
	return strings.Join(out, " ")
}

// runInput is a request of a client of AG-UI.
func runInput(thread, run, text string, more ...string) string {
	return fmt.Sprintf(`{"threadId":%q,"runId":%q,"state":{},"tools":[],"context":[],"forwardedProps":{},"messages":[{"id":"m-%s","role":"user","content":%q}]`, thread, run, run, text) +
		strings.Join(append([]string{""}, more...), ",") + "}"
}

// TestAGUI_stream: a run is streamed in the words of the protocol.
func TestAGUI_stream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	want := "RUN_STARTED STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_CONTENT mortise.usage TEXT_MESSAGE_END STEP_FINISHED mortise.run_ended RUN_FINISHED"
	list := w.agui(http.MethodPost, "/v1/threads/t/runs?format=ag-ui", say("say hello world"))
	if got := kinds(list); got != want {
		t.Errorf("the events are\n%s, want\n%s", got, want)
	}
	first, last := list[0].data, list[len(list)-1]
	if first["threadId"] != "t" || first["protocolVersion"] != "1.0" || last.data["runId"] != first["runId"] || !strings.HasSuffix(last.id, "-end") {
		t.Errorf("the first event is %v, the last one %v", first, last)
	}
	w.want(http.StatusNoContent, http.MethodGet, fmt.Sprintf("/v1/runs/%s/events?format=ag-ui", first["runId"]), "", "Last-Event-ID", last.id)
	w.refused(http.StatusUnprocessableEntity, http.MethodPost, "/v1/runs?format=ag-ui", say("say hi"))
	w.refused(http.StatusUnprocessableEntity, http.MethodGet, fmt.Sprintf("/v1/runs/%s/events?format=yaml", first["runId"]), "")
}

// aguiRuns are runs with all that may happen to one, each with its world.
func aguiRuns(t *testing.T) map[string]func() (*world, string) {
	t.Helper()
	ended := func(w *world, run string) (*world, string) {
		w.follow(run, "").until("settled")
		return w, run
	}
	return map[string]func() (*world, string){
		"text": func() (*world, string) {
			w := newWorld(t, options{})
			return ended(w, w.submit("/v1/threads/t/runs", say("say a b")).Run)
		},
		"failure": func() (*world, string) {
			w := newWorld(t, options{})
			return ended(w, w.submit("/v1/threads/t/runs", say("fail")).Run)
		},
		"decision": func() (*world, string) {
			w := newWorld(t, options{})
			run := w.submit("/v1/threads/t/runs", say("ask")).Run
			w.follow(run, "").until("run_waiting")
			w.want(http.StatusOK, http.MethodPost, "/v1/runs/"+run+"/decisions", `{"decisions":[{"target":"ticket","action":"allow","result":"yes"}]}`)
			return ended(w, run)
		},
		"cancelled while it waits": func() (*world, string) {
			w := newWorld(t, options{})
			run := w.submit("/v1/threads/t/runs", say("ask")).Run
			w.follow(run, "").until("run_waiting")
			w.want(http.StatusOK, http.MethodPost, "/v1/runs/"+run+"/cancel", "")
			return ended(w, run)
		},
		"cancelled in a tool": func() (*world, string) {
			w := newWorld(t, options{})
			run := w.submit("/v1/threads/t/runs", say("slow")).Run
			<-w.mind.begun
			w.want(http.StatusOK, http.MethodPost, "/v1/runs/"+run+"/cancel", "")
			return ended(w, run)
		},
		"an answer that begins anew": func() (*world, string) {
			w := newWorld(t, options{runtime: func(c *mortise.Config) {
				a := c.Agents["a"]
				a.Retry.BackoffBaseMS = 1
				c.Agents["a"] = a
			}})
			return ended(w, w.submit("/v1/threads/t/runs", say("stutter")).Run)
		},
		"lost events": func() (*world, string) {
			w := newWorld(t, options{runtime: func(c *mortise.Config) { c.Mailbox.Events.Count, c.Mailbox.Events.Pause = 4, -1 }})
			return ended(w, w.submit("/v1/threads/t/runs", say("say a b c d e f")).Run)
		},
		"two processes": func() (*world, string) {
			open := sqlite(t)
			one := newWorld(t, options{store: open()})
			run := one.submit("/v1/threads/t/runs", say("hold")).Run
			one.follow(run, "").until("step_started")
			<-one.mind.begun
			one.close() // the run is given back
			two := newWorld(t, options{store: open()})
			close(two.mind.release)
			return ended(two, run)
		},
	}
}

// TestAGUI_reattach: whatever happens to a run, its events can be verified, from the beginning and after any event, and all that
// had not come before comes.
func TestAGUI_reattach(t *testing.T) {
	t.Parallel()
	var streams []aguiCase
	for name, run := range aguiRuns(t) {
		w, id := run()
		list := w.aguiAll(id, "")
		streams = append(streams, aguiCase{name, plainly(list)})
		if name == "an answer that begins anew" && !strings.Contains(kinds(list), "stream_reset") {
			t.Errorf("%s: the events are %s", name, kinds(list))
		}
		if last := list[len(list)-1].data["type"]; last != "RUN_FINISHED" && (name != "failure" || last != "RUN_ERROR") {
			t.Errorf("%s: the events are %s", name, kinds(list))
		}
		for i, e := range list[:len(list)-1] {
			if e.id == "" {
				continue // it comes with the next one
			}
			rest := w.aguiAll(id, e.id)
			streams = append(streams, aguiCase{name + " after " + e.id, plainly(rest)})
			if len(rest) < len(list)-i-1 || !same(rest[len(rest)-(len(list)-i-1):], list[i+1:]) {
				t.Errorf("%s: after %s comes\n%s, want at the end\n%s", name, e.id, kinds(rest), kinds(list[i+1:]))
			}
		}
	}
	t.Run("client", func(t *testing.T) {
		t.Parallel()
		aguiNode(t, "verify", streams)
	})
}

func same(a, b []aguiEvent) bool {
	return slices.EqualFunc(a, b, func(a, b aguiEvent) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
}

// aguiCase is a stream for the protocol's own client to verify.
type aguiCase struct {
	Name   string           `json:"name"`
	Events []map[string]any `json:"events"`
}

// aguiNode runs the script with the protocol's own client.
func aguiNode(t *testing.T, mode string, input any) {
	t.Helper()
	node, err := exec.LookPath("node")
	dir := os.Getenv("MORTISE_NPM_AGUI")
	if dir == "" {
		dir = filepath.Join("..", "bin", "npm-agui")
	}
	if _, missing := os.Stat(filepath.Join(dir, "node_modules")); err != nil || missing != nil {
		testskip.Skip(t, "node or %s is not there: serve/testdata/npm/build.sh bin/npm-agui makes it, with npm", dir)
	}
	dir, err = filepath.Abs(dir)
	must(t, err)
	data, err := json.Marshal(input)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, filepath.Join("testdata", "npm", "client.mjs"), dir, mode) //nolint:gosec // the test's own script
	cmd.Stdin = strings.NewReader(string(data))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "ok") {
		t.Errorf("%s: %v\n%s", mode, err, out)
	}
}

// TestAGUI_run: a client of the protocol runs an agent, is asked, and answers; what is in the thread is not sent again.
func TestAGUI_run(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	list := w.agui(http.MethodPost, "/v1/ag-ui", runInput("t", "r1", "say one"))
	if list[0].data["runId"] != "r1" || list[0].data["threadId"] != "t" || !strings.Contains(fmt.Sprint(list[0].data["rawEvent"]), "adapter:ag-ui") {
		t.Errorf("the first event is %v", list[0])
	}
	if again := w.agui(http.MethodPost, "/v1/ag-ui", runInput("t", "r1", "say one")); !same(again, list) {
		t.Errorf("the same request is\n%s, want\n%s", kinds(again), kinds(list))
	}
	w.want(http.StatusOK, http.MethodGet, "/v1/runs/r1", "")
	history := `"messages":[{"id":"m-r1","role":"user","content":"say one"},{"id":"x","role":"assistant","content":"one"},{"id":"y","role":"user","content":[{"type":"text","text":"ask"}]}]`
	list = w.agui(http.MethodPost, "/v1/ag-ui", `{"threadId":"t","runId":"r2",`+history+`}`)
	last := list[len(list)-1].data
	outcome, _ := json.Marshal(last["outcome"])
	for _, part := range []string{`"type":"interrupt"`, `"id":"ticket"`, `"toolCallId":"call_ask"`, `"reason":"tool_call"`, `"responseSchema":{`} {
		if !strings.Contains(string(outcome), part) {
			t.Errorf("%s is not in %s", part, outcome)
		}
	}
	if p := w.refused(http.StatusConflict, http.MethodPost, "/v1/ag-ui", runInput("t", "r3", "say more")); p.Field != "body.resume" {
		t.Errorf("the problem is %+v", p)
	}
	resume := `{"threadId":"t","runId":"r4","messages":[{"id":"z","role":"user","content":"say and more"}],"resume":[{"interruptId":"ticket","status":"resolved","payload":{"approved":true,"by":"me"}}]}`
	list = w.agui(http.MethodPost, "/v1/ag-ui", resume)
	if got := kinds(list); !strings.Contains(got, "TOOL_CALL_RESULT") || !strings.HasSuffix(got, "RUN_FINISHED") || list[0].data["runId"] != "r4" {
		t.Errorf("the events are %s", got)
	}
	for _, e := range list {
		if e.data["type"] == "TOOL_CALL_RESULT" && e.data["content"] != `decided {"approved":true,"by":"me"}` {
			t.Errorf("the result is %v", e.data)
		}
	}
	var page struct{ Messages []json.RawMessage }
	w.want(http.StatusOK, http.MethodGet, "/v1/threads/t/messages", "").decode(t, &page)
	if len(page.Messages) != 7 { // one, its answer, ask, its call, the result, and more, and its answer
		t.Errorf("the thread has %d messages: %s", len(page.Messages), page.Messages)
	}
}

// TestAGUI_deny: an answer that does not approve denies the call, whatever its words or its type.
func TestAGUI_deny(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	n := 0
	for answer, want := range map[string]string{
		`"status":"resolved","payload":{"approved":false,"reason":"too loud"}`: "too loud",
		`"status":"cancelled"`: "no answer",
		`"status":"resolved","payload":{"approved":"false","reason":"in a text"}`:    "in a text",
		`"status":"resolved","payload":{"approved":null,"reason":"nothing"}`:         "nothing",
		`"status":"resolved","payload":false`:                                        "did not approve",
		`"status":"resolved","payload":{"accepted":false,"reason":"in other words"}`: "in other words",
		`"status":"resolved"`: "did not approve",
	} {
		n++
		thread := fmt.Sprint("t", n)
		w.agui(http.MethodPost, "/v1/ag-ui", runInput(thread, "run "+thread, "ask"))
		list := w.agui(http.MethodPost, "/v1/ag-ui", fmt.Sprintf(`{"threadId":%q,"runId":"next %s","messages":[],"resume":[{"interruptId":"ticket",%s}]}`, thread, thread, answer))
		if result := fmt.Sprint(list[len(list)-1].data["result"]); !strings.Contains(result, want) {
			t.Errorf("%s: the result is %s", answer, result)
		}
	}
}

// TestAGUI_answer: what a call asked for, besides a permission, is given to it as it is.
func TestAGUI_answer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for _, tool := range []string{"inquire", "form"} {
		w.agui(http.MethodPost, "/v1/ag-ui", runInput(tool, "run "+tool, tool))
		list := w.agui(http.MethodPost, "/v1/ag-ui", fmt.Sprintf(`{"threadId":%q,"runId":"next %s","messages":[],"resume":[{"interruptId":"ticket","status":"resolved","payload":{"city":"Kiel"}}]}`, tool, tool))
		if result := fmt.Sprint(list[len(list)-1].data["result"]); !strings.Contains(result, `decided {"city":"Kiel"}`) {
			t.Errorf("%s: the result is %s", tool, result)
		}
	}
}

// TestAGUI_refuses: what cannot be honoured is refused, and names the field.
func TestAGUI_refuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for body, want := range map[string]string{
		`{"threadId":"t","runId":"r","messages":[],"tools":[{"name":"x","description":"y"}]}`:                                            "body.tools",
		`{"threadId":"t","runId":"r","messages":[]}`:                                                                                     "body.messages",
		`{"threadId":"t","runId":"r","messages":[{"id":"a","role":"assistant","content":"hi"}]}`:                                         "body.messages",
		`{"threadId":"t","runId":"r","messages":[{"id":"a","role":"user","content":[{"type":"image"}]}]}`:                                "body.messages[0].content",
		`{"threadId":"t","runId":"","messages":[]}`:                                                                                      "body.runId",
		`{"threadId":"t","runId":"r","messages":[],"resume":[{"interruptId":"k","status":"resolved","payload":{"editedArgs":{"a":1}}}]}`: "body.resume[0].payload",
	} {
		p := problem{}
		a := w.do(http.MethodPost, "/v1/ag-ui", body)
		a.decode(t, &p)
		if a.StatusCode != http.StatusUnprocessableEntity || p.Field != want {
			t.Errorf("%s: %d %+v, want %s", body, a.StatusCode, p, want)
		}
	}
	w.refused(http.StatusConflict, http.MethodPost, "/v1/ag-ui", `{"threadId":"t","runId":"r","messages":[],"resume":[{"interruptId":"k","status":"cancelled"}]}`)
	w.refused(http.StatusUnprocessableEntity, http.MethodPost, "/v1/ag-ui?agent=nobody", runInput("t", "r", "say hi"))
	w.agui(http.MethodPost, "/v1/ag-ui?agent=a", runInput("t", "r", "say hi"))
	w.refused(http.StatusConflict, http.MethodPost, "/v1/ag-ui", runInput("other", "r", "say hi"))
}

// TestAGUI_client: the protocol's own client runs agents, unchanged.
func TestAGUI_client(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	aguiNode(t, "run", map[string]string{"url": w.http.URL + "/v1/ag-ui"})
}
