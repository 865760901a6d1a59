package compaction_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/blob"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/signals"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/store/memstore"
)

// model is a model that a test writes.
type model func(r llm.Request) (*abi.Response, error)

func (f model) Infer(_ context.Context, r llm.Request) (*abi.Response, error) { return f(r) }

func answers(text string, calls ...abi.ToolCall) *abi.Response {
	return &abi.Response{Message: abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text(text)}, ToolCalls: calls}}
}

// dump is a tool with a long output.
type dump struct{ text string }

func (dump) Tools() []abi.Tool { return []abi.Tool{{Name: "dump", Kind: abi.ToolRead}} }

func (d dump) CallTool(_ context.Context, c abi.ToolCall) (abi.ToolResult, error) {
	return abi.ToolResult{CallID: c.ID, ToolName: c.Name, Status: abi.ToolSuccess, Content: []abi.ContentBlock{abi.Text(d.text)}}, nil
}

func quiet(t *testing.T) *phases.Runtime {
	t.Helper()
	p, err := phases.New(phases.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A long output is whole for the inference that asked for it, and masked after; the
// model reads the rest with the tool and the handle that stand there. The log keeps
// the original.
func TestMaskedOutputIsRead(t *testing.T) {
	t.Parallel()
	shelf, err := blob.New(blob.Config{Store: memstore.New()})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a line of output\n", 3000) + "the needle is 4711\n"
	tools, err := agent.JoinTools(dump{text}, shelf.Tools(thread))
	if err != nil {
		t.Fatal(err)
	}
	c := newDesk().at(t, says("short"), func(cfg *compaction.Config) {
		cfg.Policy = compaction.Policy{NeverMask: []string{blob.ToolReadOutput}}
		cfg.Keep = func(thread, label, text string) (string, error) { return shelf.Put(t.Context(), thread, label, text) }
	})
	handle := regexp.MustCompile("stored as ([^;]+);")
	step := 0
	a, err := agent.New(agent.Config{Profile: agent.Profile{Phases: quiet(t), Tools: tools, Model: model(func(r llm.Request) (*abi.Response, error) {
		step++
		last := r.Messages[len(r.Messages)-1].Text()
		switch step {
		case 1:
			return answers("", abi.ToolCall{ID: "c1", Name: "dump"}), nil
		case 2: // the model reads it for the first time
			if last != text {
				t.Errorf("the fresh output was masked: %.100q", last)
			}
			return answers("I see"), nil
		case 3:
			for _, m := range r.Messages {
				if found := handle.FindStringSubmatch(m.Text()); found != nil {
					if len(m.Text()) > 3000 || m.ToolCallID != "c1" {
						t.Errorf("masked is %+v", m)
					}
					offset := float64(strings.Index(text, "the needle"))
					return answers("", abi.ToolCall{ID: "c2", Name: blob.ToolReadOutput, Arguments: map[string]any{"handle": found[1], "offset": offset}}), nil
				}
			}
			return nil, errors.New("no handle is there")
		default:
			if !strings.Contains(last, "the needle is 4711") {
				t.Errorf("the tool answered %.200q", last)
			}
			return answers("4711"), nil
		}
	})}, Compactor: c})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if _, err := a.Run(t.Context(), agent.Request{ThreadID: thread, Messages: []abi.Message{user(fmt.Sprintf("u%d", i), "go")}}); err != nil {
			t.Fatal(err)
		}
	}
	whole := 0
	for _, m := range a.Thread(thread).Messages() {
		if m.Text() == text {
			whole++
		}
	}
	if step != 4 || whole != 1 {
		t.Errorf("%d steps, the log has the output %d times", step, whole)
	}
}

// What the provider does to the run decides whether a compaction may start: the
// sampler observes each request.
func TestProviderSignalOfARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, providerSignal)
}

func providerSignal(t *testing.T) {
	t.Helper()
	sampler, err := signals.New(signals.Config{MaxErrorRate: 300, MinCalls: 4, Headroom: 1})
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk()
	c := d.at(t, says("short"), func(cfg *compaction.Config) { cfg.Signals = sampler.Sample })
	failures := 2
	a, err := agent.New(agent.Config{
		Profile: agent.Profile{Phases: quiet(t), Model: model(func(llm.Request) (*abi.Response, error) {
			if failures > 0 {
				failures--
				return nil, &llm.Error{Kind: llm.KindOverloaded, Message: "busy"}
			}
			return answers(words(600)), nil
		})}, Compactor: c, Inference: agent.Inference{Retry: llm.Retry{MaxRetries: 2, BackoffBaseMS: 1}, Observe: func(ctx context.Context, _ llm.Call) (context.Context, func(llm.Call)) {
			return ctx, func(c llm.Call) { sampler.Observe(c.Took, c.Fault()) }
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if _, err := a.Run(t.Context(), agent.Request{ThreadID: thread, Messages: []abi.Message{user(fmt.Sprintf("u%d", i), "go")}}); err != nil {
			t.Fatal(err)
		}
	}
	// Two of the first three calls failed: with the fourth it is judged.
	if e := d.last(t); e.Decision == nil || e.Decision.Reason != abi.ReasonProviderDegraded || *e.Decision.Signals.Provider.ErrorRatePerMille != 500 {
		t.Errorf("decided %+v", e)
	}
	for range 6 {
		sampler.Observe(time.Second, false)
	}
	if _, err := a.Run(t.Context(), agent.Request{ThreadID: thread, Messages: []abi.Message{user("more", "go")}}); err != nil {
		t.Fatal(err)
	}
	if !c.Pending(thread) {
		t.Errorf("decided %+v", d.last(t).Decision)
	}
}

// A run is ended while a summary is being written, and its process too. The next
// process reads the log, reports what was under way, and continues.
func TestRunGoesOnInAnotherProcess(t *testing.T) {
	t.Parallel()
	memory := compaction.NewMemory()
	var log []abi.Message
	process := func(summary string, turns int) *compaction.Compactor {
		var a *agent.Agent
		tasks, err := background.New(background.Config{Ledger: passing{give: func(ctx context.Context, id string, n abi.Notice) error {
			return a.Deliver(ctx, id, n)
		}}})
		if err != nil {
			t.Fatal(err)
		}
		d := newDesk()
		c := d.at(t, scripted(func(ctx context.Context, _ *abi.SummarizeRequest) (*abi.Summary, error) {
			if summary == "" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return &abi.Summary{Text: summary}, nil
		}), func(cfg *compaction.Config) {
			cfg.Store, cfg.Spawn, cfg.Owner = memory, tasks.Housekeep, "owner of "+summary
		})
		a, err = agent.New(agent.Config{Profile: agent.Profile{Phases: quiet(t), Model: model(func(llm.Request) (*abi.Response, error) {
			return answers(words(700)), nil
		})}, Compactor: c})
		if err != nil {
			t.Fatal(err)
		}
		if len(log) > 0 {
			if err := a.Append(t.Context(), thread, log...); err != nil {
				t.Fatal(err)
			}
		}
		for i := range turns {
			if i == 1 {
				d.pass(2 * time.Second) // behind the back-off
			}
			if _, err := a.Run(t.Context(), agent.Request{ThreadID: thread, Messages: []abi.Message{user("", "go")}}); err != nil {
				t.Fatal(err)
			}
		}
		if summary != "" {
			if err := tasks.Wait(t.Context(), thread); err != nil {
				t.Fatal(err)
			}
			a.Settle(t.Context(), thread)
		}
		log = a.Thread(thread).Messages()
		t.Cleanup(func() { _ = tasks.Close(context.Background()) })
		return c
	}
	process("", 4)
	if state, _, err := memory.Load(thread); err != nil || state.InFlight == nil {
		t.Fatal("nothing is under way")
	}
	before := len(log)
	c := process("it went on", 3)
	if c.Total(thread) != 1 || len(log) != before+6 || c.Markers(thread)[0].Summary != "it went on" {
		t.Fatalf("%d compactions, %d messages", c.Total(thread), len(log))
	}
	kinds := ""
	for _, e := range memory.Events(thread) {
		kinds += string(e.Kind) + " "
	}
	if !strings.HasPrefix(kinds, "admission started admission recovered ") || !strings.HasSuffix(kinds, "swapped ") {
		t.Errorf("recorded %s", kinds)
	}
	checkView(t, log, c.View(thread, log), newest(c))
}
