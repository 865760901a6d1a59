package proxy_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/store/memstore"
)

// keeper is a client of Responses that has the provider keep its conversation.
type keeper struct {
	t      *testing.T
	stream bool
	// more are fields of each request. After the first one an answer is continued, unless they have a conversation.
	more, id string
	raw      []byte
}

func (k *keeper) send(url, input string) {
	k.t.Helper()
	resp, raw := k.tries(url, input)
	if resp.StatusCode != http.StatusOK {
		k.t.Fatalf("%s %s", resp.Status, raw)
	}
	k.id = (&agent{t: k.t, proto: wire.Responses, stream: k.stream}).read(raw).ID
}

// tries sends input, whatever becomes of it.
func (k *keeper) tries(url, input string) (resp *reply, raw []byte) {
	k.t.Helper()
	body := fmt.Sprintf(`{"model":"gpt-5","input":%s,"stream":%t,"tools":[{"type":"function","name":"bash","parameters":{"type":"object","properties":{}},"strict":false}]%s`, input, k.stream, k.more)
	if k.id != "" && !strings.Contains(k.more, "conversation") {
		body += `,"previous_response_id":"` + k.id + `"`
	}
	resp, k.raw = post(k.t, url+"/v1/responses", body+"}")
	return resp, k.raw
}

// The provider keeps answers with calls that were blocked. Requests that continue them bring the results that it wants, whether the call stood
// alone, besides others, or too often; also after a restart, and again from an earlier answer.
func TestStored(t *testing.T) {
	t.Parallel()
	const out = `{"type":"function_call_output","call_id":"ok","output":"done"}`
	bad, ok := call("bad", "bash", "rm -rf /"), call("ok", "bash", "ls")
	for name, calls := range map[string][]abi.ToolCall{"alone": {bad}, "besides": {ok, bad}, "too often": nil} {
		for _, mode := range []string{"answer", "conversation"} {
			for _, stream := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/stream=%t", name, mode, stream), func(t *testing.T) {
					t.Parallel()
					var seen map[string]string
					var all []*stand
					up := fake(t, func(q providertest.Query) providertest.Answer {
						seen = results(q)
						last := q.Messages[len(q.Messages)-1]
						switch {
						case calls == nil && (last.Text() == "begin" || last.Role == abi.RoleTool):
							return providertest.Answer{Calls: []abi.ToolCall{call(fmt.Sprintf("bad%d", q.N), "bash", "rm -rf /")}}
						case last.Text() == "begin":
							return providertest.Answer{Calls: calls}
						}
						return providertest.Answer{Content: []abi.ContentBlock{abi.Text("I see.")}}
					})
					db := memstore.New()
					restart := func() string {
						all = append(all, start(t, up.URL(), proxy.Config{Store: db, Runtime: runtimeOf(t, noRm())}))
						return all[len(all)-1].url
					}
					k := &keeper{t: t, stream: stream}
					if mode == "conversation" {
						_, raw := post(t, up.URL()+"/v1/conversations", "{}")
						k.more = `,"conversation":{"id":"` + wire.Text(raw, "id") + `"}`
					}
					k.send(restart(), `"begin"`)
					if contains(k.raw, "rm -rf") {
						t.Fatalf("the client got %s", k.raw)
					}
					first, next := k.id, `"more"`
					if len(calls) == 2 {
						next = "[" + out + "]"
					}
					k.send(restart(), next)
					if len(calls) > 0 && !strings.Contains(seen["bad"], "never") || len(calls) == 2 && seen["ok"] != "done" || calls == nil && len(seen) != 9 {
						t.Errorf("the model saw %v", seen)
					}
					k.send(restart(), `[{"role":"user","content":"even more"}]`)
					if mode == "answer" {
						k.id = first
						k.send(restart(), next)
					}
					for _, s := range all { // else a result that was sent twice went unseen
						if s.Report().Counts["fell_back"] > 0 {
							t.Error("the provider refused a request of the proxy")
						}
					}
				})
			}
		}
	}
}

// An answer that is made in the background is paid once, however often it is fetched, and a call of it that was blocked has its result in the
// request that continues it.
func TestStored_fetched(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]proxy.Config{
		"gate": {Runtime: runtimeOf(t, noRm())}, "store": {Runtime: runtimeOf(t, noRm()), Store: memstore.New()}, "bare": {},
	} {
		up := fake(t, func(q providertest.Query) providertest.Answer {
			if q.N == 1 && name != "bare" {
				return providertest.Answer{Calls: []abi.ToolCall{call("bad", "bash", "rm -rf /")}}
			}
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("I see.")}}
		})
		s := start(t, up.URL(), cfg)
		k := &keeper{t: t, more: `,"background":true`}
		for _, input := range []string{`"begin"`, `[{"role":"user","content":"more"}]`} {
			k.send(s.url, input)
			for range 2 {
				wait(t, "the answer", func() bool {
					_, k.raw = fetch(t, s.url+"/v1/responses/"+k.id)
					return wire.Text(k.raw, "status") == "completed"
				})
			}
			if contains(k.raw, "rm -rf") {
				t.Errorf("%s: the client got %s", name, k.raw)
			}
		}
		report, paid, calls := s.Report(), int64(0), 0
		for _, b := range up.Bills() {
			paid += b.Usage.TotalTokens
			calls++
		}
		if u := report.Side.Usage; u.Prompt()+u.Output != paid || report.Side.Calls != int64(calls) || calls != 2 {
			t.Errorf("%s: counted %+v, paid %d in %d calls", name, report.Side, paid, calls)
		}
	}
}

// A background answer of which a client fetches the rest of the stream is paid once, whatever of it is fetched; one that is cancelled costs what
// the provider reports, and the conversation continues from the answer before it.
func TestStored_resumed(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]proxy.Config{
		"gate": {Runtime: runtimeOf(t, policyGate(abi.FailIgnore))}, "closed": {Runtime: runtimeOf(t, noRm())}, "bare": {},
	} {
		up := fake(t, func(q providertest.Query) providertest.Answer {
			if last := q.Messages[len(q.Messages)-1]; last.Text() == "wait" {
				return providertest.Answer{Fault: &providertest.Fault{Hang: true}}
			}
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("I see.")}}
		})
		s := start(t, up.URL(), cfg)
		k := &keeper{t: t, more: `,"background":true`}
		k.send(s.url, `"begin"`)
		first := k.id
		wait(t, "the answer", func() bool { return len(up.Bills()) == 1 })
		for _, after := range []string{"1", "4", "1"} {
			resp, raw := fetch(t, s.url+"/v1/responses/"+k.id+"?stream=true&starting_after="+after)
			switch refused := resp.StatusCode == http.StatusForbidden; {
			case refused != (name == "closed"):
				t.Errorf("%s: %s %s", name, resp.Status, raw)
			case !refused && (contains(raw, "response.created") || !contains(raw, "response.completed")):
				t.Errorf("%s: the client got %s", name, raw)
			}
		}
		if name == "closed" { // it fetches all of it
			fetch(t, s.url+"/v1/responses/"+k.id+"?stream=true")
		}
		k.send(s.url, `[{"role":"user","content":"wait"}]`)
		for range 2 {
			if resp, raw := post(t, s.url+"/v1/responses/"+k.id+"/cancel", ""); resp.StatusCode != http.StatusOK || wire.Text(raw, "status") != "cancelled" {
				t.Errorf("%s: %s %s", name, resp.Status, raw)
			}
		}
		if _, raw := fetch(t, s.url+"/v1/responses/"+k.id); wire.Text(raw, "status") != "cancelled" {
			t.Errorf("%s: %s", name, raw)
		}
		k.id, k.more = first, ""
		k.send(s.url, `[{"role":"user","content":"more"}]`)
		billed(t, name, s, up)
	}
}

// billed compares the ledger with what the provider bills.
func billed(t *testing.T, name string, s *stand, up *providertest.Server) {
	t.Helper()
	var paid wire.Usage
	for _, b := range up.Bills() {
		paid.Input += b.Usage.PromptTokens
		paid.Output += b.Usage.CompletionTokens
	}
	r := s.Report()
	side, total := r.Side.Usage, r.Total.Paid.Usage
	if side.Prompt()+total.Prompt() != paid.Input || side.Output+total.Output != paid.Output {
		t.Errorf("%s: counted %+v and %+v, billed %+v", name, side, total, paid)
	}
}

func fetch(tb testing.TB, url string) (*reply, []byte) {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+providertest.DefaultKey)
	return do(tb, r)
}

// A plugin at after_inference takes a call out of an answer that the provider keeps, replaces it by another one, or refuses the answer. Requests
// that continue it bring the results, or the calls, that the provider wants.
func TestStored_replaced(t *testing.T) {
	t.Parallel()
	ok := abi.ToolCall{ID: "ok", Name: "bash", Arguments: map[string]any{"command": "ls"}}
	for name, c := range map[string]struct {
		calls []abi.ToolCall // of the plugin's answer
		want  map[string]string
	}{
		"one of two": {[]abi.ToolCall{ok}, map[string]string{"ok": "done", "bad": "a plugin took"}},
		"all":        {nil, map[string]string{"ok": "a plugin took", "bad": "a plugin took"}},
		"by another": {[]abi.ToolCall{{ID: "new", Name: "bash", Arguments: map[string]any{}}}, map[string]string{"": "done", "ok": "a plugin took", "bad": "a plugin took"}},
		"gated too":  {[]abi.ToolCall{{ID: "gated", Name: "bash", Arguments: map[string]any{"command": "rm -rf x"}}, ok}, map[string]string{"ok": "done", "bad": "a plugin took"}},
		"gated":      {[]abi.ToolCall{{ID: "gated", Name: "bash", Arguments: map[string]any{"command": "rm -rf x"}}}, nil},
		"refused":    {},
	} {
		for _, mode := range []string{"answer", "conversation"} {
			for _, stream := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/stream=%t", name, mode, stream), func(t *testing.T) {
					t.Parallel()
					var seen map[string]string
					up := fake(t, func(q providertest.Query) providertest.Answer {
						if seen = results(q); q.N == 1 {
							return providertest.Answer{Calls: []abi.ToolCall{call("bad", "bash", "rm -rf /"), call("ok", "bash", "ls")}}
						}
						return providertest.Answer{Content: []abi.ContentBlock{abi.Text("I see.")}}
					})
					s := start(t, up.URL(), proxy.Config{Store: memstore.New(), Runtime: runtimeOf(t, noRm(), answers(abi.FailRun, func(r *abi.Response) (*abi.Message, error) {
						switch {
						case len(r.Message.ToolCalls) == 0:
							return nil, nil
						case name == "refused":
							return nil, errors.New("broken")
						}
						return &abi.Message{Content: []abi.ContentBlock{abi.Text("Well.")}, ToolCalls: c.calls}, nil
					}))})
					k := &keeper{t: t, stream: stream}
					if mode == "conversation" {
						_, raw := post(t, up.URL()+"/v1/conversations", "{}")
						k.more = `,"conversation":{"id":"` + wire.Text(raw, "id") + `"}`
					}
					if name == "refused" {
						k.tries(s.url, `"begin"`)
						k.id = ""
					} else {
						k.send(s.url, `"begin"`)
					}
					if contains(k.raw, "rm -rf") {
						t.Fatalf("the client got %s", k.raw)
					}
					first, next := k.id, `"more"`
					if name != "refused" {
						if calls := (&agent{t: t, proto: wire.Responses, stream: stream}).read(k.raw).Calls(); len(calls) == 1 {
							next = `[{"type":"function_call_output","call_id":"` + calls[0].ID + `","output":"done"}]`
						}
					}
					for range 2 { // the second time from the same answer
						k.id = first
						k.send(s.url, next)
						for id, want := range c.want {
							if id != "" && !strings.Contains(seen[id], want) || !slices.ContainsFunc(slices.Collect(maps.Values(seen)), func(s string) bool { return strings.Contains(s, want) }) {
								t.Errorf("the model saw %v", seen)
							}
						}
						if mode == "conversation" {
							break
						}
					}
					k.send(s.url, `[{"role":"user","content":"even more"}]`)
					if s.Report().Counts["fell_back"] > 0 {
						t.Error("the provider refused a request of the proxy")
					}
				})
			}
		}
	}
}
