package proxy_test

import (
	"fmt"
	"net/http"
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
	body := fmt.Sprintf(`{"model":"gpt-5","input":%s,"stream":%t,"tools":[{"type":"function","name":"bash","parameters":{"type":"object","properties":{}},"strict":false}]%s`, input, k.stream, k.more)
	if k.id != "" && !strings.Contains(k.more, "conversation") {
		body += `,"previous_response_id":"` + k.id + `"`
	}
	resp, raw := post(k.t, url+"/v1/responses", body+"}")
	if resp.StatusCode != http.StatusOK {
		k.t.Fatalf("%s %s", resp.Status, raw)
	}
	k.id, k.raw = (&agent{t: k.t, proto: wire.Responses, stream: k.stream}).read(raw).ID, raw
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

func fetch(tb testing.TB, url string) (*reply, []byte) {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+providertest.DefaultKey)
	return do(tb, r)
}
