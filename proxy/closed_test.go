package proxy_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// twice are bodies with a field that is there twice, of which a plugin sees one and the provider may read the other: in a part of a result, in a
// source of its own within it, in the arguments of a call, and in a tool, its schema or a group of tools.
func twice() [][]string {
	const double = `"text":"one","te\u0078t":"two"`
	messages := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[%s]}],"tools":[%s]}`
	chat := `{"model":"m","messages":[{"role":"tool","tool_call_id":"a","content":[%s]}],"tools":[%s]}`
	responses := `{"model":"m","input":[%s],"tools":[%s]}`
	return [][]string{
		{"/v1/messages", fmt.Sprintf(messages, `{"type":"tool_result","tool_use_id":"a","content":[{"type":"text",`+double+`}]}`, "")},
		{"/v1/messages", fmt.Sprintf(messages, `{"type":"tool_result","tool_use_id":"a","content":[{"type":"document","source":{`+double+`}}]}`, "")},
		{"/v1/messages", fmt.Sprintf(messages, `{"type":"tool_use","id":"a","name":"n","input":{"deep":[{`+double+`}]}}`, "")},
		{"/v1/messages", fmt.Sprintf(messages, `{"type":"text","text":"x"}`, `{"name":"one","name":"two","input_schema":{}}`)},
		{"/v1/messages", fmt.Sprintf(messages, `{"type":"text","text":"x"}`, `{"name":"one","input_schema":{"properties":{`+double+`}}}`)},
		{"/v1/chat/completions", fmt.Sprintf(chat, `{"type":"text",`+double+`}`, "")},
		{"/v1/chat/completions", fmt.Sprintf(chat, `{"type":"text","text":"x"}`, `{"type":"function","function":{"name":"one","name":"two"}}`)},
		{"/v1/responses", fmt.Sprintf(responses, `{"type":"function_call_output","call_id":"a","output":[{"type":"input_text",`+double+`}]}`, "")},
		{"/v1/responses", fmt.Sprintf(responses, "", `{"type":"namespace","name":"n","tools":[{"type":"function","name":"one","name":"two"}]}`)},
	}
}

// What a plugin that fails closed cannot see does not pass: requests that are no JSON or have an unknown encoding, when they go up, and
// answers that cannot be read, when they come down. A plugin that may fail lets all of it pass.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for _, policy := range []abi.FailurePolicy{abi.FailRun, abi.FailIgnore} {
		for _, phase := range []abi.Phase{abi.BeforeInference, abi.AfterToolExecute, abi.BeforeToolExecute} {
			var seen atomic.Int32
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				seen.Add(1)
				w.Header().Set("Content-Encoding", "unknown")
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write([]byte("opaque"))
			}))
			t.Cleanup(up.Close)
			s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, hook{
				name: "closed", hooks: []abi.Hook{{Phase: phase, Mode: abi.ModeTransform, OnFailure: policy}},
				answer: func(*abi.Event) (*abi.Reply, error) { return nil, nil },
			})})
			want, sent := http.StatusForbidden, int32(0)
			if policy == abi.FailIgnore {
				want = http.StatusOK
			}
			cases := append(twice(), []string{"/v1/messages", "no JSON, with a secret"}, []string{"/v1/messages", hello, "Content-Encoding", "unknown"})
			if policy == abi.FailIgnore {
				sent = int32(len(cases)) //nolint:gosec // a few
			}
			for _, c := range cases {
				if resp, body := post(t, s.url+c[0], c[1], c[2:]...); resp.StatusCode != want {
					t.Errorf("%s, %s: %s: status %d: %s", policy, phase, c[1], resp.StatusCode, body)
				}
			}
			if got := seen.Load(); got != sent {
				t.Errorf("%s, %s: %d requests went up, want %d", policy, phase, got, sent)
			}
			if phase != abi.BeforeToolExecute { // no call of the answer is decided about
				continue
			}
			a := newAgent(t, wire.Messages, s.url, true)
			a.say("hello")
			if resp, body := post(t, a.url+a.path(), a.body()); resp.StatusCode != want {
				t.Errorf("%s: an answer that cannot be read has status %d: %s", policy, resp.StatusCode, body)
			}
		}
	}
}

// A small body that grows beyond what is read is refused by a plugin that fails closed, and goes up as it came otherwise; an answer that grows
// so reaches a client as it came where nothing acts.
func TestBombs(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = io.CopyN(z, zeros{}, 65<<20)
	_ = z.Close()
	for policy, status := range map[abi.FailurePolicy]int{abi.FailRun: http.StatusForbidden, abi.FailIgnore: http.StatusOK, "": http.StatusOK} {
		up := newTape(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		})
		cfg := proxy.Config{}
		if policy != "" {
			cfg.Runtime = runtimeOf(t, policyGate(policy))
		}
		s := start(t, up.URL, cfg)
		resp, _ := post(t, s.url+"/v1/messages", bomb.String(), "Content-Encoding", "gzip")
		if sent, _ := up.last(); resp.StatusCode != status || status == http.StatusOK && !bytes.Equal(sent, bomb.Bytes()) || status != http.StatusOK && sent != nil {
			t.Errorf("%q: the request: %s, %d bytes went up", policy, resp.Status, len(sent))
		}
		again, got := post(t, s.url+"/v1/messages", hello)
		if again.StatusCode != status || status == http.StatusOK && !bytes.Equal(got, bomb.Bytes()) {
			t.Errorf("%q: the answer: %s, %d bytes", policy, again.Status, len(got))
		}
	}
}

// zeros is a reader of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// panicking is a store that panics once the proxy is open.
type panicking struct {
	*memstore.Store
	on *atomic.Bool
}

func (p panicking) Scan(ctx context.Context, q store.Scan) ([]store.Ref, error) {
	if p.on.Load() && q.Index == "proxy.lanes" {
		panic("out of order")
	}
	return p.Store.Scan(ctx, q)
}

// A fault of the proxy itself lets the original pass, unless a plugin fails closed.
func TestFault_closed(t *testing.T) {
	t.Parallel()
	for policy, want := range map[abi.FailurePolicy]int{abi.FailRun: http.StatusForbidden, abi.FailIgnore: http.StatusOK} {
		up := fake(t, nil)
		on := &atomic.Bool{}
		s := start(t, up.URL(), proxy.Config{Store: panicking{memstore.New(), on}, Runtime: runtimeOf(t, hook{
			name: "closed", hooks: []abi.Hook{{Phase: abi.BeforeInference, Mode: abi.ModeTransform, OnFailure: policy}},
			answer: func(*abi.Event) (*abi.Reply, error) { return nil, nil },
		})})
		on.Store(true)
		a := newAgent(t, wire.Messages, s.url, true)
		a.say("a secret")
		resp, body := post(t, a.url+a.path(), a.body())
		if resp.StatusCode != want || s.Report().Counts["panics"] == 0 {
			t.Errorf("%s: status %d, %v: %s", policy, resp.StatusCode, s.Report().Counts, body)
		}
		if n := len(up.Bills()); (n == 0) != (policy == abi.FailRun) {
			t.Errorf("%s: %d requests went up", policy, n)
		}
	}
}
