package anthropic_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/anthropic"
	"github.com/mortise-dev/mortise/llm/llmtest"
	"github.com/mortise-dev/mortise/llm/providertest"
)

// TestContract runs the contract of a provider, for a model that takes a thinking budget and one that adapts.
func TestContract(t *testing.T) {
	t.Parallel()
	for _, thinker := range []string{"claude-sonnet-4-5", "claude-opus-4-8"} {
		t.Run(thinker, func(t *testing.T) {
			t.Parallel()
			llmtest.TestModel(t, func(t *testing.T, s *providertest.Server) llm.Model {
				t.Helper()
				return asking(t, s)
			}, llmtest.Options{Model: sonnet, Thinker: thinker})
		})
	}
}

// asking returns a model that calls a fake.
func asking(t *testing.T, s *providertest.Server) *anthropic.Model {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	m, err := anthropic.New(anthropic.Config{BaseURL: s.URL(), Key: providertest.DefaultKey, HTTP: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// fake starts a strict fake of the API, and returns a model that calls it.
func fake(t *testing.T, reply func(q providertest.Query) providertest.Answer) (*anthropic.Model, *providertest.Server) {
	t.Helper()
	s, err := providertest.New(providertest.Config{Reply: reply})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return asking(t, s), s
}

// TestRun runs steps with thinking, parallel calls and streams that break against a server that is as strict as the API.
func TestRun(t *testing.T) {
	t.Parallel()
	const steps = 6
	for _, model := range []string{"claude-sonnet-4-5", "claude-opus-4-8"} {
		for _, effort := range []string{"none", "high"} {
			t.Run(model+" "+effort, func(t *testing.T) {
				t.Parallel()
				m, s := fake(t, func(q providertest.Query) providertest.Answer {
					thoughts := []abi.ContentBlock{{Type: abi.BlockThinking, Text: "I need both."}, {Type: abi.BlockThinking}}
					if q.N%3 == 2 {
						thoughts = append(thoughts, abi.Text(strings.Repeat("So far so good. ", 4)))
						return providertest.Answer{Content: thoughts, Fault: &providertest.Fault{CutAfter: 3}}
					}
					return providertest.Answer{
						Content: append(thoughts, abi.Text("I look.")),
						Calls: []abi.ToolCall{
							{ID: fmt.Sprint("a", q.N), Name: q.Tools[0].Name, Arguments: map[string]any{"n": q.N}}, {ID: fmt.Sprint("b", q.N), Name: "now"},
						},
					}
				})
				c, err := llm.NewClient(llm.ClientConfig{Model: m, Retry: llm.Retry{BackoffBaseMS: 1}})
				if err != nil {
					t.Fatal(err)
				}
				r := llm.Request{
					Model: model, Tools: requests()["tools"].Tools, Override: &abi.InferenceOverride{ReasoningEffort: &effort},
					Messages: []abi.Message{message("s", abi.RoleSystem, abi.Text(strings.Repeat("Be brief. ", 2000))), user("Go.")},
				}
				for step := range steps {
					n, err := m.CountTokens(t.Context(), r)
					if err != nil {
						t.Fatal(err)
					}
					answer, err := c.Ask(t.Context(), r, nil)
					if err != nil {
						t.Fatal(err)
					}
					got := answer.Response
					if len(got.Message.ToolCalls) != 2 || got.Message.ToolCalls[0].Name != "fs.read" {
						t.Fatalf("step %d: got %s", step, asJSON(got))
					}
					if u := got.Usage; answer.Requests == 1 && u.PromptTokens != n {
						t.Errorf("step %d: counted %d, billed %+v", step, n, u)
					}
					got.Message.ID = fmt.Sprint("m", step)
					r.Messages = append(r.Messages, got.Message)
					for _, call := range got.Message.ToolCalls {
						r.Messages = append(r.Messages, abi.Message{ID: "r" + call.ID, Role: abi.RoleTool, ToolCallID: call.ID, Content: []abi.ContentBlock{abi.Text("ok")}})
					}
				}
				checkBills(t, s.Bills(), steps)
			})
		}
	}
}

// checkBills checks costs, and that each request read the cache that the one before wrote, or the one before that: what
// continues a broken answer is in no later request.
func checkBills(t *testing.T, bills []providertest.Bill, atLeast int) {
	t.Helper()
	if len(bills) < atLeast {
		t.Fatalf("%d requests", len(bills))
	}
	var last, cached int64
	for i, b := range bills {
		if b.Usage.CacheReadTokens < min(last, cached) {
			t.Errorf("request %d read %d tokens of the cache, which holds %d: %+v", i, b.Usage.CacheReadTokens, cached, b.Usage)
		}
		last, cached = cached, b.Usage.CacheReadTokens+b.Usage.CacheCreationTokens
		if cost, ok := llm.DefaultPrices().Cost(b.Model, b.Usage); !ok || math.Abs(cost-b.Cost) > 1e-9 {
			t.Errorf("request %d cost %v, by the prices %v", i, b.Cost, cost)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault providertest.Fault
		kind  llm.Kind
		after time.Duration
	}{
		{providertest.Fault{Status: 429, RetryAfter: 3 * time.Second}, llm.KindRateLimited, 3 * time.Second},
		{providertest.Fault{Status: 529}, llm.KindOverloaded, 0},
		{providertest.Fault{Status: 500}, llm.KindProvider, 0},
		{providertest.Fault{CutAfter: 1}, llm.KindStreamInterrupted, 0},
		{providertest.Fault{ErrorEventAfter: 1}, llm.KindOverloaded, 0},
		{providertest.Fault{Refusal: true}, llm.KindContentFiltered, 0},
	} {
		m, _ := fake(t, func(providertest.Query) providertest.Answer {
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text(strings.Repeat("word ", 20))}, Fault: &c.fault}
		})
		_, whole := m.Infer(t.Context(), asks("Hi."))
		_, streamed := llm.Collect(func(emit func(llm.Delta) bool) error { return m.Stream(t.Context(), asks("Hi."), emit) })
		for _, err := range []error{whole, streamed} {
			if kind(err) != c.kind || retryAfter(err) != c.after {
				t.Errorf("%+v: got %v", c.fault, err)
			}
		}
	}
	m, _ := fake(t, nil)
	r := asks(strings.Repeat("word ", 200_000))
	if _, err := m.Infer(t.Context(), r); kind(err) != llm.KindContextOverflow {
		t.Errorf("a long prompt: got %v", err)
	}
	r.Model = "claude-nobody-9"
	if _, err := m.CountTokens(t.Context(), r); kind(err) != llm.KindModelNotFound {
		t.Errorf("an unknown model: got %v", err)
	}
}
