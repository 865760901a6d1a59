package agentrun_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// halting is a model that stops in the middle of its first answer, until its context ends. Each answer is billed.
type halting struct{ asked int }

func (*halting) Infer(context.Context, llm.Request) (*abi.Response, error) { panic("it streams") }

func (m *halting) Stream(ctx context.Context, _ llm.Request, emit func(llm.Delta) bool) error {
	m.asked++
	emit(llm.Delta{Type: llm.DeltaUsage, Usage: &abi.Usage{PromptTokens: 10, CompletionTokens: 1}})
	emit(llm.Delta{Type: llm.DeltaText, Text: "half"})
	if m.asked == 1 {
		<-ctx.Done()
		return ctx.Err()
	}
	emit(llm.Delta{Type: llm.DeltaText, Text: " and whole"})
	return nil
}

// TestCutOff: of an answer that a shutdown cuts off nothing is kept, another process asks again, and both are counted. What a
// cancelled run has said is kept.
func TestCutOff(t *testing.T) {
	t.Parallel()
	for _, cancelled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store, model := memstore.New(), &halting{}
			one := newProcess(t, store, "one", model, &tools{})
			sub := one.submit(t, request(t, "t", user("go")))
			synctest.Wait()
			want, wantUsage := "user: go|assistant: half and whole", int64(20)
			if cancelled {
				_, err := one.box.CancelRun(t.Context(), sub.Run)
				must(t, err)
				one.await(t, sub)
				want, wantUsage = "user: go|assistant: half", 10
			} else {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				must(t, one.box.Close(ctx))
				two := newProcess(t, store, "two", model, &tools{})
				if d := two.await(t, sub); d.Status != mailbox.Acked || d.Response != "half and whole" {
					t.Errorf("dispatch is %+v", d)
				}
			}
			if got := strings.Join(log(t, store, "t"), "|"); got != want {
				t.Errorf("log is %q, want %q", got, want)
			}
			run, _, err := one.box.Run(t.Context(), sub.Run)
			must(t, err)
			var r agent.Record
			must(t, json.Unmarshal(run.Data, &r))
			if r.Usage.PromptTokens != wantUsage {
				t.Errorf("usage is %+v, want %d prompt tokens", r.Usage, wantUsage)
			}
		})
	}
}

// once is a model that makes some calls, and states then that it is done.
type once []string

func (o once) Infer(_ context.Context, req llm.Request) (*abi.Response, error) {
	out := abi.Message{Role: abi.RoleAssistant}
	if req.Messages[len(req.Messages)-1].Role == abi.RoleTool {
		out.Content = []abi.ContentBlock{abi.Text("done")}
		return &abi.Response{Message: out}, nil
	}
	for _, name := range o {
		out.ToolCalls = append(out.ToolCalls, abi.ToolCall{ID: name, Name: name, Arguments: map[string]any{}})
	}
	return &abi.Response{Message: out}, nil
}

// lasting are tools that take until their context ends: late has its result then, early has none.
type lasting struct{}

func (lasting) Tools() []abi.Tool {
	return []abi.Tool{{Name: "late"}, {Name: "early"}, {Name: "asked"}, {Name: "judged"}}
}

func (lasting) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	if call.Name == "asked" {
		return abi.ToolResult{Message: "executed"}, nil
	}
	<-ctx.Done()
	if call.Name == "late" {
		return abi.ToolResult{Message: "the secret"}, nil
	}
	return abi.ToolResult{}, fmt.Errorf("gone: %w", context.Cause(ctx))
}

// guard hides what results say, asks about calls of asked, and takes forever to judge those of judged.
type guard struct{}

func (guard) Describe() abi.Description {
	return abi.Description{
		Name: "guard", Version: "1.0.0", ABI: abi.VersionRange{Min: 1, Max: 1},
		Hooks: []abi.Hook{{Phase: abi.ToolGate, Mode: abi.ModeGate}, {Phase: abi.AfterToolExecute, Mode: abi.ModeTransform}},
	}
}

func (guard) OnPhase(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
	switch {
	case e.Phase == abi.AfterToolExecute && strings.Contains(e.Result.Message, "secret"):
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectReplaceResult, Result: &abi.ToolResult{Status: abi.ToolSuccess, Message: "hidden"}}}}, nil
	case e.Phase == abi.ToolGate && e.Call.Name == "asked":
		return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateSuspend, Ticket: &abi.SuspendTicket{ID: "ask", Action: "confirm", Mode: abi.ResumeReplay}}}, nil
	case e.Phase == abi.ToolGate && e.Call.Name == "judged":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, nil
}

// TestCutOff_calls: when a shutdown cuts a step off, a result that comes all the same is kept as the plugins want it, a call without one has
// a result that names whether it may have been executed, and a call that waits for a decision still waits for it.
func TestCutOff_calls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		calls once
		want  []string
	}{
		{once{"asked", "late", "early"}, []string{
			"user: go", "assistant: ", "tool: executed", "tool: hidden",
			"tool: [Tool execution was interrupted: the process ended before the call was executed]", "assistant: done",
		}},
		{once{"early"}, []string{
			"user: go", "assistant: ", "tool: [Tool execution was interrupted: the process ended, and the call may have been executed]", "assistant: done",
		}},
		{once{"judged"}, []string{
			"user: go", "assistant: ", "tool: [Tool execution was interrupted: the process ended before the call was executed]", "assistant: done",
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.New()
			one := newProcess(t, store, "one", c.calls, lasting{}, guard{})
			sub := one.submit(t, request(t, "t", user("go")))
			synctest.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			must(t, one.box.Close(ctx))
			two := newProcess(t, store, "two", c.calls, lasting{}, guard{})
			if slices.Contains(c.calls, "asked") {
				if d := two.await(t, sub); d.Status != mailbox.Acked || len(two.runOf(t, sub.Run).Tickets) != 1 {
					t.Fatalf("dispatch is %+v, run %+v", d, two.runOf(t, sub.Run))
				}
				ok, err := two.box.Decide(t.Context(), sub.Run, yes(t, "ask")...)
				must(t, err)
				if !ok {
					t.Error("the call does not wait for a decision any more")
				}
			}
			synctest.Wait()
			if run := two.runOf(t, sub.Run); run.Status != mailbox.RunDone || run.Response != "done" {
				t.Errorf("run is %+v", run)
			}
			wantLog(t, store, "t", c.want...)
		})
	}
}
