package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/store/memstore"
)

const hunter = "hunter2-very-secret"

// masking is a plugin that takes a secret out of whatever a model is about to be sent, and fails closed.
func masking(broken func() error) hook {
	mask := func(list []abi.ContentBlock) (out []abi.ContentBlock, found bool) {
		for _, b := range list {
			found = found || strings.Contains(b.Text, hunter)
			b.Text = strings.ReplaceAll(b.Text, hunter, "***")
			out = append(out, b)
		}
		return out, found
	}
	return hook{
		name: "mask", hooks: []abi.Hook{
			{Phase: abi.BeforeInference, Mode: abi.ModeTransform, Messages: abi.ViewAll, OnFailure: abi.FailRun},
			{Phase: abi.AfterToolExecute, Mode: abi.ModeTransform, OnFailure: abi.FailRun},
		},
		answer: func(e *abi.Event) (*abi.Reply, error) {
			if err := broken(); err != nil {
				return nil, err
			}
			r := &abi.Reply{}
			if e.Result != nil {
				res := *e.Result
				var found bool
				if res.Content, found = mask(res.Content); found {
					r.Effects = append(r.Effects, abi.Effect{Type: abi.EffectReplaceResult, Result: &res})
				}
				return r, nil
			}
			for i := range e.Messages {
				m := &e.Messages[i]
				if content, found := mask(m.Content); found && m.Role == abi.RoleUser {
					r.Effects = append(r.Effects, abi.Effect{Type: abi.EffectReplaceMessage, MessageID: m.ID, Content: content})
				}
			}
			return r, nil
		},
	}
}

// leaks collects all that leaves the proxy: bodies for the provider, logs, threads and reports.
type leaks struct {
	mu     sync.Mutex
	bodies [][]byte
	log    bytes.Buffer
}

func (l *leaks) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Write(p)
}

func (l *leaks) add(body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bodies = append(l.bodies, bytes.Clone(body))
}

// check looks for the secret in all of it.
func (l *leaks) check(t *testing.T, db *memstore.Store, s *stand) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, b := range l.bodies {
		if contains(b, hunter) {
			t.Errorf("request %d of %d has the secret: %.200s", i+1, len(l.bodies), b)
		}
	}
	if contains(l.log.Bytes(), hunter) {
		t.Errorf("the log has it: %s", l.log.Bytes())
	}
	for _, e := range logged(t, db) {
		if strings.Contains(e, hunter) {
			t.Errorf("the store has it: %.2000s", e)
		}
	}
	if report, err := json.Marshal(s.Report()); err != nil || contains(report, hunter) {
		t.Errorf("the report has it: %v %s", err, report)
	}
}

func (l *leaks) config(t *testing.T, db *memstore.Store, p hook) proxy.Config {
	t.Helper()
	return proxy.Config{Store: db, Runtime: runtimeOf(t, p), Logger: slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))}
}

// A request that a plugin refused has not been seen: the same again fires its phases again, and what they take out stays out.
func TestRefused_again(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p wire.Protocol, stream bool) {
		t.Helper()
		l, db := &leaks{}, memstore.New()
		up := fake(t, func(q providertest.Query) providertest.Answer {
			l.add(q.Body)
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("ok")}}
		})
		var broken error
		s := start(t, up.URL(), l.config(t, db, masking(func() error { return broken })))
		a := newAgent(t, p, s.url, stream, "X-Session-Id", "s1")
		for i, text := range []string{"the key is " + hunter, "again: " + hunter} {
			broken = errors.New("out of order")
			a.say(text)
			for range 2 {
				if resp, body := post(t, a.url+a.path(), a.body(), a.header...); resp.StatusCode != http.StatusForbidden {
					t.Fatalf("turn %d: status %d: %s", i, resp.StatusCode, body)
				}
			}
			broken = nil
			a.step()
		}
		l.check(t, db, s)
		if len(l.bodies) != 2 || !contains(l.bodies[1], "the key is ***") || !contains(l.bodies[1], "again: ***") {
			t.Errorf("%d requests: %s", len(l.bodies), l.bodies)
		}
		if r := s.Report().Lanes; len(r) != 1 || r[0].Calls != 2 {
			t.Errorf("%+v", r)
		}
	})
}

// leaving is a plugin whose first event the client does not wait for.
type leaving struct {
	hook

	once  sync.Once
	leave func()
}

func (p *leaving) OnPhase(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
	gone := false
	p.once.Do(func() {
		p.leave()
		<-ctx.Done()
		gone = true
	})
	if gone {
		return nil, ctx.Err()
	}
	return p.hook.OnPhase(ctx, e)
}

// A client that goes while plugins work on its request, and sends it again: the plugins see it again.
func TestGone_again(t *testing.T) {
	t.Parallel()
	l, db := &leaks{}, memstore.New()
	up := fake(t, func(q providertest.Query) providertest.Answer {
		l.add(q.Body)
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text("ok")}}
	})
	ctx, cancel := context.WithCancel(t.Context())
	p := masking(func() error { return nil })
	for i := range p.hooks {
		p.hooks[i].OnFailure = abi.FailIgnore
	}
	cfg := l.config(t, db, p)
	cfg.Runtime = runtimeOf(t, &leaving{hook: p, leave: cancel})
	s := start(t, up.URL(), cfg)
	a := newAgent(t, wire.Messages, s.url, false, "X-Session-Id", "s1")
	a.say("the key is " + hunter)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+a.path(), strings.NewReader(a.body()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", providertest.DefaultKey)
	r.Header.Set("X-Session-Id", "s1")
	if resp, err := http.DefaultTransport.RoundTrip(r); err == nil {
		_ = resp.Body.Close()
		t.Error("the client was to be gone")
	}
	wait(t, "the request ends", func() bool { return s.Report().Counts["active"] == 0 })
	a.step()
	a.say("more")
	a.step()
	l.check(t, db, s)
}

// What was taken out of a conversation is in no summary of it: neither in the words of the user that a summary repeats, nor in reminders, nor
// in what recall returns.
func TestRedacted_swap(t *testing.T) {
	t.Parallel()
	for _, p := range []wire.Protocol{wire.Messages, wire.Responses, wire.Chat} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			l, db := &leaks{}, memstore.New()
			log := &upstreamLog{t: t, proto: p}
			model := work(log, 30)
			up := fake(t, func(q providertest.Query) providertest.Answer {
				l.add(q.Body)
				return model(q)
			})
			cfg := l.config(t, db, masking(func() error { return nil }))
			cfg.Compaction = policy()
			s := start(t, up.URL(), cfg)
			a := newAgent(t, p, s.url, true, "X-Session-Id", "s")
			a.say("List the numbers. The key is " + hunter + ".")
			rounds(t, s, a, new(int))
			if s.Report().Counts["swaps"] == 0 {
				t.Error("nothing was compacted")
			}
			l.check(t, db, s)
		})
	}
}

// Requests besides a conversation have what plugins that fail closed took out of it taken out, too: titles, counts before a request is sent, and
// the client's own summary of another list.
func TestRedacted_sides(t *testing.T) {
	t.Parallel()
	l, db := &leaks{}, memstore.New()
	up := newTape(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	var broken error
	mask := masking(func() error { return broken })
	cfg := l.config(t, db, mask)
	cfg.Runtime = runtimeOf(t, mask, noRm()) // a gate takes no request out of the other's sight
	s := start(t, up.URL, cfg)
	header := []string{"X-Claude-Code-Session-Id", "s1"}
	const say = `{"role":"user","content":"the key is ` + hunter + `"}`
	const tool = `"tools":[{"name":"bash","input_schema":{"type":"object"}}]`
	const result = `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"bash","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"` + hunter + `"}]}`
	for name, side := range map[string][2]string{
		"title":    {"/v1/messages", `{"model":"m","max_tokens":9,"messages":[` + say + `]}`},
		"count":    {"/v1/messages/count_tokens", `{"model":"m","messages":[` + say + "," + result + `],` + tool + `}`},
		"string":   {"/v1/responses", `{"model":"m","input":"the key is ` + hunter + `"}`},
		"tools":    {"/v1/responses", `{"model":"m","input":"the key is ` + hunter + `","tools":[{"type":"function","name":"bash"}]}`},
		"stateful": {"/v1/responses", `{"model":"m","previous_response_id":"r","input":[` + say + `],` + tool + `}`},
		"summary":  {"/v1/messages", `{"model":"m","max_tokens":9,"messages":[` + say + "," + result + `]}`},
	} {
		broken = nil
		post(t, s.url+side[0], side[1], header...)
		body, _ := up.last()
		if contains(body, hunter) || !contains(body, "***") {
			t.Errorf("%s: %s", name, body)
		}
		broken = errors.New("out of order")
		n := len(up.paths)
		if resp, body := post(t, s.url+side[0], side[1], header...); resp.StatusCode != http.StatusForbidden || len(up.paths) != n {
			t.Errorf("%s: status %d: %s", name, resp.StatusCode, body)
		}
	}
	if lanes := s.Report().Lanes; len(lanes) != 1 || lanes[0].Calls != 1 {
		t.Errorf("only the stateful one is of a conversation: %+v", lanes)
	}
	if contains(l.log.Bytes(), hunter) {
		t.Errorf("the log has it: %s", l.log.Bytes())
	}
}

// Of what plugins do to a request besides a conversation only the texts count that they replace: it keeps its model and its tools, nothing is
// added, and it is not stopped.
func TestSides_texts(t *testing.T) {
	t.Parallel()
	model := "other"
	hooks := []abi.Hook{{Phase: abi.BeforeInference, Mode: abi.ModeGate, OnFailure: abi.FailRun}, {Phase: abi.AfterToolExecute, Mode: abi.ModeGate, OnFailure: abi.FailRun}}
	up := newTape(t, nothing)
	s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, hook{name: "more", hooks: hooks, answer: func(e *abi.Event) (*abi.Reply, error) {
		r := &abi.Reply{Effects: []abi.Effect{
			{Type: abi.EffectOverrideInference, Override: &abi.InferenceOverride{Model: &model}},
			{Type: abi.EffectExcludeTools, Tools: []string{"bash"}},
			{Type: abi.EffectAddContext, Context: &abi.ContextMessage{Key: "k", Content: []abi.ContentBlock{abi.Text("more")}}},
			{Type: abi.EffectStop, Code: "no", Detail: "enough"},
		}}
		if e.Result != nil {
			r.Effects = append(r.Effects, abi.Effect{Type: abi.EffectReplaceResult, Result: &abi.ToolResult{Status: abi.ToolSuccess, Content: []abi.ContentBlock{abi.Text("***")}}})
		}
		return r, nil
	}})})
	body := `{"model":"m","messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"bash","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"` + hunter + `"}]}],"tools":[{"name":"bash"}]}`
	resp, got := post(t, s.url+"/v1/messages/count_tokens", body)
	if sent, _ := up.last(); resp.StatusCode != http.StatusOK || string(sent) != strings.Replace(body, hunter, "***", 1) {
		t.Errorf("%s %s: sent %s", resp.Status, got, sent)
	}
}

// Words in other places than a text are seen, and taken out: documents of text, results of searches, and what a shell printed.
func TestRedacted_places(t *testing.T) {
	t.Parallel()
	up := newTape(t, nothing)
	s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, masking(func() error { return nil }))})
	const tool, found = `"tools":[{"name":"bash","input_schema":{"type":"object"}}]`, `[{"type":"text","text":"key ` + hunter + `"}]`
	for name, part := range map[string]string{
		"a document": `{"type":"document","title":"t","source":{"type":"text","media_type":"text/plain","data":"key ` + hunter + `"}}`,
		"its parts":  `{"type":"document","source":{"type":"content","content":` + found + `}}`, "its context": `{"type":"document","context":"` + hunter + `","source":{"type":"text","data":"x"}}`,
		"a search": `{"type":"search_result","source":"https://x","title":"t","content":` + found + `}`,
	} {
		for place, content := range map[string]string{
			"message": part + `,{"type":"text","text":"look"}`, "only": part, "result": `{"type":"tool_result","tool_use_id":"a","content":[` + part + `]}`,
		} {
			body := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"bash","input":{}}]},{"role":"user","content":[` + content + `]}],` + tool + `}`
			resp, got := post(t, s.url+"/v1/messages", body)
			sent, _ := up.last()
			if resp.StatusCode != http.StatusOK || contains(sent, hunter) || !contains(sent, "***") || !json.Valid(sent) {
				t.Errorf("%s, %s: %s %s: %s", name, place, resp.Status, got, sent)
			}
		}
	}
	post(t, s.url+"/v1/responses", `{"model":"m","input":[{"type":"shell_call_output","call_id":"a","output":[{"stdout":"key `+hunter+`","stderr":"","outcome":{"type":"exit","exit_code":3}},{"stdout":"","stderr":"`+hunter+`","outcome":{"type":"timeout"}}]}],"tools":[{"type":"shell"}]}`)
	if sent, _ := up.last(); contains(sent, hunter) || !json.Valid(sent) ||
		!contains(sent, `"output":[{"stdout":"key ***\n***","stderr":"","outcome":{"type":"exit","exit_code":3}},{"stdout":"","stderr":"","outcome":{"type":"timeout"}}]`) {
		t.Errorf("%s", sent)
	}
	post(t, s.url+"/v1/chat/completions", `{"model":"m","messages":[{"role":"function","name":"bash","content":"key `+hunter+`"}],"tools":[{"type":"function","function":{"name":"bash"}}]}`)
	if sent, _ := up.last(); contains(sent, hunter) || !contains(sent, `{"role":"function","name":"bash","content":"key ***"}`) {
		t.Errorf("%s", sent)
	}
}
