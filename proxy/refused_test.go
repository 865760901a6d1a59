package proxy_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/store/memstore"
)

// effects is a plugin with effects before an inference.
func effects(list func(e *abi.Event) []abi.Effect) hook {
	return hook{
		name: "effects", hooks: []abi.Hook{{Phase: abi.BeforeInference, Mode: abi.ModeTransform, Messages: abi.ViewAll}},
		answer: func(e *abi.Event) (*abi.Reply, error) { return &abi.Reply{Effects: list(e)}, nil },
	}
}

// A request that plugins changed and the provider refuses stays refused: the original has what they took out, a text, a model or a tool.
func TestFallBack_edited(t *testing.T) {
	t.Parallel()
	model := "other"
	for name, list := range map[string]func(e *abi.Event) []abi.Effect{
		"text": func(e *abi.Event) []abi.Effect {
			return []abi.Effect{{Type: abi.EffectReplaceMessage, MessageID: e.Messages[0].ID, Content: []abi.ContentBlock{abi.Text("x")}}}
		},
		"model": func(*abi.Event) []abi.Effect {
			return []abi.Effect{{Type: abi.EffectOverrideInference, Override: &abi.InferenceOverride{Model: &model}}}
		},
		"tool": func(*abi.Event) []abi.Effect {
			return []abi.Effect{{Type: abi.EffectExcludeTools, Tools: []string{"bash"}}}
		},
	} {
		body := strings.Replace(hello, `"stream":true`, `"tools":[{"name":"bash","input_schema":{"type":"object"}}]`, 1)
		up := newTape(t, func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength != int64(len(body)) {
				w.WriteHeader(http.StatusBadRequest)
			}
			nothing(w, r)
		})
		s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, effects(list))})
		resp, _ := post(t, s.url+"/v1/messages", body)
		if sent, _ := up.last(); resp.StatusCode != http.StatusBadRequest || len(up.bodies) != 1 || string(sent) == body {
			t.Errorf("%s: %s, %d requests, sent %s", name, resp.Status, len(up.bodies), sent)
		}
	}
}

// While the original is sent again other requests do not wait for the conversation.
func TestFallBack_waits(t *testing.T) {
	t.Parallel()
	var s *stand
	body := strings.Replace(hello, `"stream":true`, `"tools":[{"name":"bash"}]`, 1)
	up := newTape(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > int64(len(body)) {
			w.WriteHeader(http.StatusBadRequest)
		} else {
			done := make(chan struct{})
			go func() {
				s.Report() // asks each conversation
				close(done)
			}()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Error("the conversation is locked")
			}
		}
		nothing(w, r)
	})
	s = start(t, up.URL, proxy.Config{Runtime: runtimeOf(t), Tools: &offered{}})
	if resp, got := post(t, s.url+"/v1/messages", body); resp.StatusCode != http.StatusOK || s.Report().Counts["fell_back"] != 1 {
		t.Errorf("%s %s", resp.Status, got)
	}
}

// A compaction that was put in when a plugin, or the provider, refused the request: later requests offer recall, its handles name what the
// thread has, and a compaction that was made before is not put in behind the refusal.
func TestSwap_refused(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"plugin", "provider"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			refused, handle, recalled := false, "", ""
			refuse := func(body string) bool {
				if refused || !strings.Contains(body, "mortise: summary") {
					return false
				}
				refused = true
				return true
			}
			up := fake(t, func(q providertest.Query) providertest.Answer {
				if by == "provider" && refuse(string(q.Body)) {
					return providertest.Answer{Fault: &providertest.Fault{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "not this"}}
				}
				for _, m := range q.Messages {
					if _, rest, ok := strings.Cut(m.Text(), "by these handles: "); ok {
						handle, _, _ = strings.Cut(rest, ",")
					}
				}
				switch last := q.Messages[len(q.Messages)-1]; {
				case last.Text() == "recall it":
					return providertest.Answer{Calls: []abi.ToolCall{{ID: "recall", Name: "mortise_recall", Arguments: map[string]any{"handle": strings.TrimSpace(handle)}}}}
				case last.ToolCallID == "recall":
					recalled = last.Text()
					return providertest.Answer{Content: []abi.ContentBlock{abi.Text("recalled")}}
				}
				return providertest.Answer{Calls: []abi.ToolCall{call(fmt.Sprintf("call_%d", q.N), "bash", "cat")}}
			})
			c := policy()
			c.Every, c.Policy.ThresholdTokens, c.Policy.KeepRecentTokens, c.Policy.SummaryTokens = 2, 20_000, 4000, 1000
			s := start(t, up.URL(), proxy.Config{Compaction: c, Store: memstore.New(), Runtime: runtimeOf(t, hook{
				name: "picky", hooks: []abi.Hook{{Phase: abi.BeforeInference, Mode: abi.ModeTransform, Messages: abi.ViewAll, OnFailure: abi.FailRun}},
				answer: func(e *abi.Event) (*abi.Reply, error) {
					if by == "plugin" && refuse(e.Messages[0].Text()) {
						return nil, errors.New("not this")
					}
					return nil, nil
				},
			})})
			a := newAgent(t, wire.Messages, s.url, true, "X-Session-Id", "s")
			step := func() *wire.Answer {
				resp, raw := post(t, a.url+a.path(), a.body(), a.header...)
				if resp.StatusCode == http.StatusForbidden {
					return a.step()
				}
				ans := a.read(raw)
				for _, it := range ans.Items(func(*wire.Out) bool { return true }) {
					a.items = append(a.items, string(it))
				}
				return ans
			}
			a.say("Task 0")
			want := map[string]int64{"plugin": 1, "provider": 2}[by]
			for i := 0; s.Report().Counts["swaps"] < want; i++ {
				if i == 80 {
					t.Fatalf("%v", s.Report().Counts)
				}
				ans := step()
				settle(t, s)
				a.answer(ans, func(wire.Out) string { return strings.Repeat("some words of code. ", output/20) })
			}
			a.items = append(a.items, `{"role":"assistant","content":[{"type":"text","text":"so"}]}`)
			a.say("recall it")
			if ans := step(); ans.Text() != "recalled" || !refused || !strings.Contains(recalled, "some words of code") {
				t.Errorf("recalled %.200q by %s, the client got %s; %+v", recalled, handle, ans.Text(), s.Report().Lanes)
			}
		})
	}
}

// An error of the provider that is long, or compressed, reaches the client whole, and is read: a prompt that is too long is compacted.
func TestOverflow_compressed(t *testing.T) {
	t.Parallel()
	l := &upstreamLog{t: t, proto: wire.Messages}
	model := fake(t, work(l, 1000))
	to, err := url.Parse(model.URL())
	if err != nil {
		t.Fatal(err)
	}
	relay := httputil.NewSingleHostReverseProxy(to)
	relay.ModifyResponse = func(r *http.Response) error {
		if r.StatusCode != http.StatusBadRequest {
			return nil
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.Copy(z, r.Body)
		_ = z.Close()
		r.Body = io.NopCloser(&b)
		r.Header.Set("Content-Encoding", "gzip")
		r.Header.Set("Content-Length", strconv.Itoa(b.Len()))
		return nil
	}
	up := httptest.NewServer(relay)
	t.Cleanup(up.Close)
	overflows(t, up.URL)

	long := newTape(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, strings.Repeat("x", 100<<10))
	})
	s := start(t, long.URL, proxy.Config{Compaction: policy()})
	if resp, body := post(t, s.url+"/v1/messages", hello); resp.StatusCode != http.StatusBadRequest || len(body) != 100<<10 {
		t.Errorf("%s: %d bytes", resp.Status, len(body))
	}
}
