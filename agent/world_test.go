package agent_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

// The parts of a world. Model, tools and listener run on the goroutine of the
// run or while it waits for them, so they may draw from the world's generator.

func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent }

// text makes a text that is nowhere else.
func (w *world) text(who string) string {
	w.number++
	return fmt.Sprintf("[%s %d]", who, w.number)
}

func (w *world) keep(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

// hear cancels the run at a random event.
func (w *world) hear(e agent.Event) {
	w.events = append(w.events, e)
	if w.chance(1) {
		w.cancel()
	}
	if w.chance(1) {
		panic("the listener has a bad day")
	}
}

// Infer answers with text, calls of all kinds, nothing, an error or a panic.
func (w *world) Infer(ctx context.Context, _ llm.Request) (*abi.Response, error) {
	switch n := w.rng.IntN(100); {
	case n < 4:
		return nil, &llm.Error{Kind: llm.KindOverloaded, Message: "busy"}
	case n < 5:
		panic("the model has a bad day")
	case n < 6:
		return nil, nil
	case n < 8:
		w.cancel()
		return nil, ctx.Err()
	case n < 10:
		w.cancel()
	}
	m := abi.Message{Role: []abi.Role{abi.RoleAssistant, abi.RoleUser, abi.RoleTool, ""}[w.rng.IntN(4)]}
	m.ID = []string{"", "same", ""}[w.rng.IntN(3)]
	if w.chance(70) {
		text := w.text("model")
		w.keep(text)
		m.Content = []abi.ContentBlock{abi.Text(text)}
	}
	for range max(0, w.rng.IntN(7)-3) {
		m.ToolCalls = append(m.ToolCalls, abi.ToolCall{
			ID: []string{"", "a", "b", "c"}[w.rng.IntN(4)], Name: []string{"echo", "shell", "", "gone"}[w.rng.IntN(4)],
		})
	}
	return &abi.Response{Model: "random", Message: m, Usage: &abi.Usage{PromptTokens: 1}}, nil
}

func (w *world) Tools() []abi.Tool {
	return []abi.Tool{{Name: "echo", Kind: abi.ToolRead}, {Name: "shell", Kind: abi.ToolExecute}}
}

// CallTool answers, fails, panics, answers another call, or cancels the run.
func (w *world) CallTool(_ context.Context, _ abi.ToolCall) (abi.ToolResult, error) {
	switch n := w.rng.IntN(100); {
	case n < 10:
		return abi.ToolResult{}, errors.New("the tool broke")
	case n < 15:
		panic("the tool has a bad day")
	case n < 20:
		w.cancel()
	}
	text := w.text("tool")
	w.keep(text)
	return abi.ToolResult{CallID: "b", Content: []abi.ContentBlock{abi.Text(text)}}, nil
}

// plugin makes a plugin that does one thing at one phase, now and then.
func (w *world) plugin(i int) phases.Plugin {
	p := &moody{
		name: fmt.Sprint("p", i), phase: abi.Phases()[w.rng.IntN(9)], seed: w.rng.Uint64(), often: uint64(1 + w.rng.IntN(60)),
		fail: []abi.FailurePolicy{abi.FailRun, abi.FailIgnore, abi.FailQuarantine}[w.rng.IntN(3)],
	}
	p.deed = []string{"stop", "fail", "panic", "append", "emit", "exclude"}[w.rng.IntN(6)]
	if w.chance(30) {
		deeds := map[abi.Phase]string{abi.AfterInference: "answer", abi.BeforeToolExecute: "rewrite", abi.AfterToolExecute: "result", abi.StepEnd: "notify"}
		p.phase = []abi.Phase{abi.AfterInference, abi.BeforeToolExecute, abi.AfterToolExecute, abi.StepEnd}[w.rng.IntN(4)]
		p.deed = deeds[p.phase]
	}
	if w.chance(40) {
		p.phase = abi.ToolGate
		p.deed = []string{"block", "suspend", "set_result", "fail"}[w.rng.IntN(4)]
	}
	return p
}

// moody answers by a hash of the event, so that the same event gets the same
// answer, in whatever order hooks run.
type moody struct {
	name, deed  string
	phase       abi.Phase
	fail        abi.FailurePolicy
	seed, often uint64
}

func (m *moody) Describe() abi.Description {
	return abi.Description{
		Name: m.name, Version: "1", ABI: abi.VersionRange{Min: 1, Max: 1},
		Hooks: []abi.Hook{{Phase: m.phase, Mode: abi.ModeGate, Messages: abi.ViewAll, OnFailure: m.fail}},
	}
}

func (m *moody) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	h := fnv.New64a()
	fmt.Fprint(h, m.seed, e.Phase, e.Step, e.MessagesTotal)
	if h.Sum64()%100 >= m.often {
		return nil, nil
	}
	switch m.deed {
	case "fail":
		return nil, errors.New("the plugin has a bad day")
	case "panic":
		panic("the plugin has a bad day")
	case "stop":
		return effect(abi.Effect{Type: abi.EffectStop, Code: "enough"}), nil
	case "append":
		return effect(abi.Effect{Type: abi.EffectAppendMessages, Messages: []abi.Message{user("a plugin's word")}}), nil
	case "emit":
		return effect(abi.Effect{Type: abi.EffectEmit, EventType: "news"}), nil
	case "exclude":
		return effect(abi.Effect{Type: abi.EffectExcludeTools, Tools: []string{"shell"}}), nil
	case "rewrite":
		return effect(abi.Effect{Type: abi.EffectRewriteCall, Arguments: m.name}), nil
	case "answer":
		return effect(abi.Effect{Type: abi.EffectReplaceResponse, Message: &abi.Message{
			Content: e.Response.Message.Content, ToolCalls: append(e.Response.Message.ToolCalls[:0:0], abi.ToolCall{ID: "a", Name: "echo"}, abi.ToolCall{Name: "shell"}),
		}}), nil
	case "result":
		return effect(abi.Effect{Type: abi.EffectReplaceResult, Result: &abi.ToolResult{Status: abi.ToolSuccess, Content: e.Result.Content, Data: "x"}}), nil
	case "notify":
		return effect(abi.Effect{Type: abi.EffectNotify, EventType: "news", Payload: e.Step}), nil
	case "block":
		return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "no"}}, nil
	case "suspend":
		return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateSuspend, Ticket: &abi.SuspendTicket{ID: "t1"}}}, nil
	default:
		return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateSetResult, Result: &abi.ToolResult{Status: abi.ToolSuccess, Message: "made up"}}}, nil
	}
}

func effect(e abi.Effect) *abi.Reply { return &abi.Reply{Effects: []abi.Effect{e}} }
