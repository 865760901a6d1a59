package llmtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/providertest"
)

// patience is how long a request may take that should end at once.
const patience = 10 * time.Second

// Ability is what a provider may lack.
type Ability string

// Abilities.
const (
	// Signatures means that thinking is signed and goes back to the provider.
	Signatures Ability = "signatures"
	// Counting means that the provider counts tokens.
	Counting Ability = "counting"
	// ToolImages means that results of tools may have images.
	ToolImages Ability = "tool_images"
)

// Options tell the suite what it needs to know about a provider.
type Options struct {
	// Model answers without thinking and takes a temperature, Thinker thinks. Both are
	// models that a [providertest.Server] has by default.
	Model, Thinker string
	// Without are the abilities that the provider lacks. Their subtests are skipped.
	Without []Ability
}

// TestModel holds that a provider keeps the contract. Open returns a model that asks the
// server, with its URL and key.
func TestModel(t *testing.T, open func(t *testing.T, s *providertest.Server) llm.Model, o Options) {
	t.Helper()
	for _, c := range slices.Concat(answerCases(), requestCases(), failureCases(), clientCases()) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.needs != "" && slices.Contains(o.Without, c.needs) {
				t.Skipf("SKIPPED: the provider declares that it is without %s", c.needs)
			}
			w := &world{t: t, o: o, reply: func(providertest.Query) providertest.Answer { return text("Hello.") }}
			s, err := providertest.New(providertest.Config{Reply: w.answer})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			w.s, w.m = s, open(t, s)
			c.run(w)
		})
	}
}

type testCase struct {
	name  string
	run   func(w *world)
	needs Ability
}

// world is a server and the model that asks it.
type world struct {
	t *testing.T
	o Options
	s *providertest.Server
	m llm.Model

	mu      sync.Mutex
	reply   func(q providertest.Query) providertest.Answer
	queries []providertest.Query
}

// answer records a query and answers it.
func (w *world) answer(q providertest.Query) providertest.Answer {
	w.mu.Lock()
	w.queries = append(w.queries, q)
	reply := w.reply
	w.mu.Unlock()
	return reply(q)
}

// answers makes the server give these answers in turn, the last one for ever.
func (w *world) answers(all ...providertest.Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reply = func(q providertest.Query) providertest.Answer { return all[min(q.N, len(all))-1] }
}

func (w *world) query(i int) providertest.Query {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if i >= len(w.queries) {
		w.t.Fatalf("the server had %d queries, want query %d", len(w.queries), i+1)
	}
	return w.queries[i]
}

func (w *world) ctx() context.Context { return w.t.Context() }

// request asks the plain model.
func (w *world) request(messages ...abi.Message) llm.Request {
	return llm.Request{ThreadID: "thread", RunID: "run", Step: 1, Model: w.o.Model, Messages: messages}
}

func (w *world) infer(r llm.Request) *abi.Response {
	w.t.Helper()
	out, err := w.m.Infer(w.ctx(), r)
	if err != nil {
		w.t.Fatalf("Infer: %v", err)
	}
	return out
}

// ask asks through a client, which streams where the model does.
func (w *world) ask(r llm.Request) llm.Answer {
	w.t.Helper()
	c, err := llm.NewClient(llm.ClientConfig{Model: w.m, Retry: llm.Retry{BackoffBaseMS: 1, OverloadedBackoffBaseMS: 1}})
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := c.Ask(w.ctx(), r, nil)
	if err != nil {
		w.t.Fatalf("Ask: %v", err)
	}
	return a
}

// both runs a subtest for Infer and one for Ask.
func (w *world) both(f func(name string, ask func(llm.Request) *abi.Response)) {
	w.t.Helper()
	f("Infer", w.infer)
	f("Ask", func(r llm.Request) *abi.Response { w.t.Helper(); return w.ask(r).Response })
}

// billed holds that a usage is what the server billed last.
func (w *world) billed(u *abi.Usage) {
	w.t.Helper()
	bills := w.s.Bills()
	if len(bills) == 0 || u == nil {
		w.t.Fatalf("usage %+v, bills %+v", u, bills)
	}
	if want := bills[len(bills)-1].Usage; *u != want {
		w.t.Errorf("usage is %+v, the server billed %+v", *u, want)
	}
}

// failed returns an error as what every failure is.
func (w *world) failed(err error) *llm.Error {
	w.t.Helper()
	failure, ok := errors.AsType[*llm.Error](err)
	if !ok {
		w.t.Fatalf("the error is %T, want *llm.Error: %v", err, err)
	}
	return failure
}

func text(s string) providertest.Answer {
	return providertest.Answer{Content: []abi.ContentBlock{abi.Text(s)}}
}

func user(s string) abi.Message {
	return abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(s)}}
}

func system(s string) abi.Message {
	return abi.Message{Role: abi.RoleSystem, Content: []abi.ContentBlock{abi.Text(s)}}
}

func result(id, s string) abi.Message {
	return abi.Message{Role: abi.RoleTool, ToolCallID: id, Content: []abi.ContentBlock{abi.Text(s)}}
}

// tools are one with arguments and one without.
func tools() []abi.Tool {
	return []abi.Tool{
		{Name: "add", Description: "Adds.", Parameters: map[string]any{
			"type": "object", "properties": map[string]any{"a": map[string]any{"type": "integer"}, "b": map[string]any{"type": "array", "items": map[string]any{"type": "number"}}},
		}},
		{Name: "now", Description: "Returns the time."},
	}
}

// calls are parallel calls of the tools.
func calls() []abi.ToolCall {
	return []abi.ToolCall{
		{ID: "call_1", Name: "add", Arguments: map[string]any{"a": int64(12345678901), "b": []any{1.5, int64(-2)}}},
		{ID: "call_2", Name: "now"},
		{ID: "call_3", Name: "add", Arguments: map[string]any{"a": int64(7), "text": "Grüße, \"wörld\" \\ \n"}},
	}
}
