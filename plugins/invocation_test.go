package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
	"github.com/mortise-dev/mortise/plugins"
)

// noted is a run in which a model calls the teller's tools.
type noted struct {
	agent    *agent.Agent
	recorder *phasestest.Recorder
	events   []agent.Event
}

func newNoted(t *testing.T, mode agent.ToolMode, model llm.Model) *noted {
	t.Helper()
	set, err := load(t, newHost(t), plugins.Entry{Module: module("teller"), Config: map[string]any{"open": true}})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := set.Tools()
	if err != nil {
		t.Fatal(err)
	}
	n := &noted{recorder: &phasestest.Recorder{}}
	rt, err := phases.New(phases.Config{Plugins: set.Plugins(), Record: n.recorder.Record})
	if err != nil {
		t.Fatal(err)
	}
	n.agent, err = agent.New(agent.Config{
		Profile: agent.Profile{Model: model, Phases: rt, Tools: tools}, Execution: agent.Execution{ToolMode: mode},
		Listen: func(_ context.Context, e agent.Event) { n.events = append(n.events, e) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *noted) run(t *testing.T) (results []string) {
	t.Helper()
	if _, err := n.agent.Run(t.Context(), agent.Request{ThreadID: "t", RunID: "r", Messages: question()}); err != nil {
		t.Fatal(err)
	}
	for _, m := range n.agent.Thread("t").Messages() {
		if m.Role == abi.RoleTool {
			results = append(results, m.Text())
		}
	}
	return results
}

// atOnce is a model that makes all its calls in one step.
type atOnce struct{ calls []abi.ToolCall }

func (m *atOnce) Infer(context.Context, llm.Request) (*abi.Response, error) {
	out := &abi.Response{Message: abi.Message{Content: []abi.ContentBlock{abi.Text("so be it")}, ToolCalls: m.calls}}
	m.calls = nil
	return out, nil
}

func note(id, text string) abi.ToolCall { return abi.ToolCall{ID: id, Name: "note", Arguments: text} }

// TestToolKnowsItsRun: a plugin's tool gets config, state, identity and messages, and what
// it replies is committed before the next call.
func TestToolKnowsItsRun(t *testing.T) {
	t.Parallel()
	n := newNoted(t, agent.Sequential, &listed{calls: []abi.ToolCall{note("c1", "first"), note("c2", "second")}})
	results := n.run(t)
	if len(results) != 2 {
		t.Fatalf("results %q", results)
	}
	for _, want := range []string{`"run":"r"`, `"thread":"t"`, `"step":1`, `"total":2`, `"last":"so be it"`, `"config":{"open":true}`, `"abi":1`, `"timed":true`, `"key":true`, `"had":null`} {
		if !strings.Contains(results[0], want) {
			t.Errorf("the first call knows %s, not %s", results[0], want)
		}
	}
	for _, want := range []string{`"step":2`, `"total":4`, `"had":["first"]`} {
		if !strings.Contains(results[1], want) {
			t.Errorf("the second call knows %s, not %s", results[1], want)
		}
	}
	var emitted []any
	for _, e := range n.events {
		if e.Type == agent.EventCustom && e.Name == "noted" && e.By == "teller" {
			emitted = append(emitted, e.Payload)
		}
	}
	if fmt.Sprint(emitted) != "[first second]" {
		t.Errorf("emitted %v", emitted)
	}
	records := n.recorder.Of("teller")
	var applied []string
	for _, r := range records {
		if r.Handler == "teller/note" {
			applied = append(applied, fmt.Sprint(r.CallID, r.ToolName, r.Applied))
		}
	}
	want := "[c1note[{set teller/notes  false} {emit noted  false}] c2note[{set teller/notes  false} {emit noted  false}]]"
	if got := fmt.Sprint(applied); got != want {
		t.Errorf("recorded %s, want %s", got, want)
	}
}

// TestToolReplyIsRefusedWhole: what a tool may not change is refused with all that came
// with it, and the model reads why instead of the result.
func TestToolReplyIsRefusedWhole(t *testing.T) {
	t.Parallel()
	n := newNoted(t, agent.Sequential, &listed{calls: []abi.ToolCall{{ID: "c1", Name: "overreach"}}})
	results := n.run(t)
	if len(results) != 1 || !strings.Contains(results[0], "does not declare this state key") || strings.Contains(results[0], "done") {
		t.Errorf("results %q", results)
	}
	if got := n.agent.Thread("t").State(); len(got) != 0 {
		t.Errorf("state %v", got)
	}
	refused := 0
	for _, r := range n.recorder.Of("teller") {
		refused += len(r.Refused)
	}
	if refused != 1 {
		t.Errorf("%d refusals are recorded", refused)
	}
}

// TestParallelToolsThatSetOneKey: calls of one step see the same state. The later one
// would undo the earlier one's change, and is refused.
func TestParallelToolsThatSetOneKey(t *testing.T) {
	t.Parallel()
	n := newNoted(t, agent.ParallelBatch, &atOnce{calls: []abi.ToolCall{note("c1", "a"), note("c2", "b")}})
	results := n.run(t)
	if len(results) != 2 || !strings.Contains(results[0], `"had":null`) || !strings.Contains(results[1], "was changed by a commit from outside of the phase") {
		t.Errorf("results %q", results)
	}
}

// TestToolReplyOutsideOfARun: without a run there is no state to change.
func TestToolReplyOutsideOfARun(t *testing.T) {
	t.Parallel()
	if _, err := teller(t).CallTool(t.Context(), note("c1", "a")); err == nil || !strings.Contains(err.Error(), "belongs to no run") {
		t.Errorf("error %v", err)
	}
}

// TestValidate: a module checks what a schema cannot, when its config is loaded.
func TestValidate(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	if _, err := load(t, h, plugins.Entry{Name: "fine", Module: module("teller"), Config: map[string]any{"open": true}}); err != nil {
		t.Fatal(err)
	}
	_, err := load(t, h, plugins.Entry{Name: "wrong", Module: module("teller"), Config: map[string]any{"open": true, "closed": true}})
	if !errors.Is(err, guest.ErrConfig) || !strings.HasSuffix(err.Error(), "at '/closed': is true beside open; choose one; see the manual") {
		t.Errorf("error %v", err)
	}
}
