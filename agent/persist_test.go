package agent_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

// witness sees from outside what processes do: it counts inferences, and keeps the keys of the
// executions of each call.
type witness struct {
	mu         sync.Mutex
	inferences int
	keys       map[string][]string
}

// Infer makes three calls, and says done after their results.
func (w *witness) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inferences++
	m := says("done")
	if r.Messages[len(r.Messages)-1].Role == abi.RoleUser {
		m = says("", calls("c1", "echo", "a"), calls("c2", "echo", "b"), calls("c3", "echo", "c"))
	}
	return &abi.Response{Message: m, Usage: &abi.Usage{PromptTokens: 100, CompletionTokens: 20, TotalTokens: 120}}, nil
}

func (w *witness) executes(c abi.ToolCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keys == nil {
		w.keys = map[string][]string{}
	}
	w.keys[c.ID] = append(w.keys[c.ID], c.IdempotencyKey)
}

// mortal is a store whose process can die: after that it keeps nothing.
type mortal struct {
	*agent.Memory
	mu   sync.Mutex
	dead bool
}

func (m *mortal) SaveCheckpoint(ctx context.Context, c agent.Checkpoint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return nil
	}
	return m.Memory.SaveCheckpoint(ctx, c)
}

func (m *mortal) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
}

// counting counts, in the state of the thread, how often each of its phases was fired.
type counting struct{}

func (counting) Describe() abi.Description {
	d := abi.Description{Name: "counting", Version: "1", ABI: abi.VersionRange{Min: 1, Max: 1}}
	for _, p := range []abi.Phase{abi.StepStart, abi.AfterInference, abi.ToolGate, abi.BeforeToolExecute} {
		d.Hooks = append(d.Hooks, abi.Hook{Phase: p, Mode: abi.ModeObserve})
		d.State = append(d.State, abi.StateKey{Name: string(p), Scope: abi.ScopeThread, Merge: abi.MergeCommutative})
	}
	return d
}

func (counting) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	return &abi.Reply{Updates: []abi.Update{{Key: string(e.Phase), Op: abi.OpAdd, Value: int64(1)}}}, nil
}

// TestKilledInATool: the process ends in a tool of a step. The next one does not ask the model
// again: the log has each call once, with its result or as interrupted, the usage is what was billed,
// and the plugins have counted each phase that fired before a tool ran.
func TestKilledInATool(t *testing.T) {
	t.Parallel()
	for _, mode := range []agent.ToolMode{agent.Sequential, agent.ParallelBatch, agent.ParallelStreaming} {
		for n, killed := range []string{"c1", "c2", "c3"} {
			for _, plugins := range [][]phases.Plugin{nil, {counting{}}} {
				t.Run(fmt.Sprintf("%s in %s with %d plugins", mode, killed, len(plugins)), func(t *testing.T) {
					t.Parallel()
					killedInATool(t, mode, n, killed, plugins)
				})
			}
		}
	}
}

func killedInATool(t *testing.T, mode agent.ToolMode, n int, killed string, plugins []phases.Plugin) {
	t.Helper()
	w, store := &witness{}, agent.NewMemory()
	first := &mortal{Memory: store}
	one := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: w}, Execution: agent.Execution{ToolMode: mode}, Checkpoints: first}, plugins...)
	ctx, cancel := context.WithCancel(t.Context())
	one.tools.do = func(ctx context.Context, c abi.ToolCall) (abi.ToolResult, error) {
		w.executes(c)
		if c.ID == killed {
			first.die()
			cancel()
		}
		return abi.ToolResult{Message: "ok"}, nil
	}
	if _, err := one.agent.Run(ctx, request(user("go"))); err == nil {
		t.Error("the run was not killed")
	}
	two := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: w}, Execution: agent.Execution{ToolMode: mode}, Checkpoints: store}, plugins...)
	two.tools.do = func(_ context.Context, c abi.ToolCall) (abi.ToolResult, error) {
		w.executes(c)
		return abi.ToolResult{Message: "ok"}, nil
	}
	r := mustRun(t, two, request())
	if r.Response != "done" || r.Steps != 2 || w.inferences != 2 || r.Usage.TotalTokens != int64(120*w.inferences) {
		t.Errorf("%d inferences; result %+v", w.inferences, r)
	}
	log := two.agent.Thread("t").Messages()
	if len(log) != 6 {
		t.Fatalf("log %q", texts(log))
	}
	for i, m := range log[2:5] {
		id := fmt.Sprint("c", i+1)
		kept := mode == agent.Sequential && i < n
		if m.ToolCallID != id || kept != (m.Text() == "ok") || !kept && !strings.Contains(m.Text(), "interrupted") {
			t.Errorf("result of %s: %q of %s", id, m.Text(), m.ToolCallID)
		}
		if keys := w.keys[id]; len(keys) > 1 || mode == agent.Sequential && len(keys) != map[bool]int{true: 1}[i <= n] {
			t.Errorf("%s was executed with the keys %q", id, keys)
		}
		if want := r.RunID + "/1/" + log[1].ID + "/" + id; len(w.keys[id]) > 0 && w.keys[id][0] != want {
			t.Errorf("%s was executed with the key %q, want %q", id, w.keys[id], want)
		}
	}
	if len(plugins) == 0 {
		return
	}
	gated := int64(3)
	if mode == agent.Sequential {
		gated = int64(n + 1)
	}
	want := map[string]any{"counting/step_start": int64(2), "counting/after_inference": int64(2), "counting/tool_gate": gated, "counting/before_tool_execute": gated}
	if got := two.agent.Thread("t").State(); !maps.Equal(got, want) {
		t.Errorf("the plugin counted %v, want %v", got, want)
	}
}

// TestKilledInAGate: the model's answer is kept before the gates run.
func TestKilledInAGate(t *testing.T) {
	t.Parallel()
	w, store := &witness{}, agent.NewMemory()
	first := &mortal{Memory: store}
	ctx, cancel := context.WithCancel(t.Context())
	gate := &hook{name: "gate", phase: abi.ToolGate, mode: abi.ModeGate, do: func(context.Context, *abi.Event) (*abi.Reply, error) {
		first.die()
		cancel()
		return nil, nil
	}}
	one := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: w}, Checkpoints: first}, gate)
	if _, err := one.agent.Run(ctx, request(user("go"))); err == nil {
		t.Error("the run was not killed")
	}
	two := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: w}, Checkpoints: store})
	if r := mustRun(t, two, request()); r.Response != "done" || w.inferences != 2 || r.Usage.TotalTokens != 240 || len(w.keys) != 0 {
		t.Errorf("%d inferences, executed %v; result %+v", w.inferences, w.keys, r)
	}
}

// TestKilledAfterAGateEdited: what a gate made of the answer is kept before the tool runs.
func TestKilledAfterAGateEdited(t *testing.T) {
	t.Parallel()
	store := agent.NewMemory()
	first := &mortal{Memory: store}
	ctx, cancel := context.WithCancel(t.Context())
	gate := &hook{name: "gate", phase: abi.ToolGate, mode: abi.ModeTransform, view: abi.ViewLast, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		return &abi.Reply{Effects: []abi.Effect{{
			Type: abi.EffectReplaceMessage, MessageID: e.Messages[len(e.Messages)-1].ID, Content: []abi.ContentBlock{abi.Text("hidden")},
		}}}, nil
	}}
	one := newBench(t, &script{answers: []abi.Message{says("secret", calls("c1", "echo", "a"))}}, agent.Config{Checkpoints: first}, gate)
	one.tools.do = func(context.Context, abi.ToolCall) (abi.ToolResult, error) {
		first.die()
		cancel()
		return abi.ToolResult{Message: "ok"}, nil
	}
	if _, err := one.agent.Run(ctx, request(user("go"))); err == nil {
		t.Error("the run was not killed")
	}
	two := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: &witness{}}, Checkpoints: store})
	thread, err := two.agent.Load(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	if got := texts(thread.Messages()); len(got) != 3 || got[1] != "assistant: hidden" {
		t.Errorf("log %q", got)
	}
}

// TestCheckpointsOfAStep: a step with calls writes one checkpoint before its first tool, one for each
// result and one at its end; a gate or a hook before the tool that changes something adds one
// for its call. A step without calls writes one.
func TestCheckpointsOfAStep(t *testing.T) {
	t.Parallel()
	tools := []abi.ToolCall{calls("c1", "echo", "a"), calls("c2", "echo", "b"), calls("c3", "echo", "c")}
	blocks := &hook{name: "gate", phase: abi.ToolGate, mode: abi.ModeGate, do: func(context.Context, *abi.Event) (*abi.Reply, error) {
		return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateSetResult, Result: &abi.ToolResult{Status: abi.ToolSuccess, Message: "x"}}}, nil
	}}
	const ends = 3 // at the start of the run, for the step that says done, and at the end of the run
	for name, test := range map[string]struct {
		calls   int
		mode    agent.ToolMode
		plugins []phases.Plugin
		want    int
	}{
		"no call":                     {0, agent.Sequential, nil, ends},
		"one call":                    {1, agent.Sequential, nil, ends + 1 + 1 + 1},
		"three calls":                 {3, agent.Sequential, nil, ends + 1 + 3 + 1},
		"three at the same time":      {3, agent.ParallelBatch, nil, ends + 1 + 3 + 1},
		"a gate that answers":         {3, agent.Sequential, []phases.Plugin{blocks}, ends + 1 + 3 + 1},
		"hooks that count":            {3, agent.Sequential, []phases.Plugin{counting{}}, ends + 1 + 3 + 3 + 1},
		"hooks that count, same time": {3, agent.ParallelBatch, []phases.Plugin{counting{}}, ends + 1 + 1 + 3 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &crashing{Memory: agent.NewMemory(), left: 1 << 20}
			answers := []abi.Message{says("done")}
			if test.calls > 0 {
				answers = []abi.Message{says("", tools[:test.calls]...), says("done")}
			}
			b := newBench(t, &script{answers: answers}, agent.Config{Execution: agent.Execution{ToolMode: test.mode}, Checkpoints: store}, test.plugins...)
			mustRun(t, b, request(user("go")))
			if n := len(store.written); n != test.want {
				t.Errorf("%d checkpoints, want %d", n, test.want)
			}
		})
	}
}

// TestKilledInAResumedCall: a call that was decided is executed again under the same key.
func TestKilledInAResumedCall(t *testing.T) {
	t.Parallel()
	w, store := &witness{}, agent.NewMemory()
	first := &mortal{Memory: store}
	answers := []abi.Message{says("", calls("c1", "shell", "a"))}
	one := newBench(t, &script{answers: answers}, agent.Config{Checkpoints: first}, asking(""))
	ctx, cancel := context.WithCancel(t.Context())
	one.tools.do = func(_ context.Context, c abi.ToolCall) (abi.ToolResult, error) {
		w.executes(c)
		first.die()
		cancel()
		return abi.ToolResult{Message: "ok"}, nil
	}
	waiting := mustRun(t, one, request(user("go")))
	if _, err := one.agent.Run(ctx, decide("c1", agent.ActionResume, nil)); err == nil {
		t.Error("the run was not killed")
	}
	two := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: w}, Checkpoints: store}, asking(""))
	two.tools.do = func(_ context.Context, c abi.ToolCall) (abi.ToolResult, error) {
		w.executes(c)
		return abi.ToolResult{Message: "ok"}, nil
	}
	if r := mustRun(t, two, request()); r.Response != "done" || w.inferences != 1 {
		t.Errorf("%d inferences; result %+v", w.inferences, r)
	}
	keys, log := w.keys["c1"], two.agent.Thread("t").Messages()
	want := waiting.RunID + "/1/" + log[1].ID + "/c1/resumed"
	if len(keys) != 2 || keys[0] != want || keys[1] != want {
		t.Errorf("executed under the keys %q, want %q twice", keys, want)
	}
	if got := toolTexts(two); len(got) != 1 || got[0] != "tool: ok" {
		t.Errorf("results %q", got)
	}
}

// TestKeysAreOfOneCall: no two calls have one key, whatever ids the model writes and whatever ids the
// runs have.
func TestKeysAreOfOneCall(t *testing.T) {
	t.Parallel()
	keys := map[string]string{}
	for _, test := range []struct{ thread, run, message, call string }{
		{"a", "r", "m", "c"},
		{"b", "s", "m", "c"}, // a model uses its ids again
		{"c", "t", "1/m", "c"},
		{"d", "t/1", "m", "c"}, // joined with slashes, this is the one before
	} {
		b := newBench(t, &script{answers: []abi.Message{{ID: test.message, ToolCalls: []abi.ToolCall{calls(test.call, "echo", "a")}}, says("done")}}, agent.Config{})
		b.tools.do = func(_ context.Context, c abi.ToolCall) (abi.ToolResult, error) {
			if other := keys[c.IdempotencyKey]; other != "" || c.IdempotencyKey == "" {
				t.Errorf("the calls of %s and %s have the key %q", other, test.run, c.IdempotencyKey)
			}
			keys[c.IdempotencyKey] = test.run
			return abi.ToolResult{Message: "ok"}, nil
		}
		if _, err := b.agent.Run(t.Context(), agent.Request{ThreadID: test.thread, RunID: test.run, Messages: []abi.Message{user("go")}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(keys) != 4 {
		t.Errorf("keys %v", keys)
	}
}
