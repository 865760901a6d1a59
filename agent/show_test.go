package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
)

// keeper is a plugin that writes its thread's state at some phases.
type keeper struct {
	phases []abi.Phase
	write  func(e *abi.Event) *abi.Reply
}

func (k *keeper) Describe() abi.Description {
	d := abi.Description{
		Name: "keep", Version: "1", ABI: abi.VersionRange{Min: 1, Max: 1},
		State: []abi.StateKey{{Name: "a/b~c", Scope: abi.ScopeThread}, {Name: "n", Scope: abi.ScopeThread}, {Name: "run"}},
	}
	for _, p := range k.phases {
		d.Hooks = append(d.Hooks, abi.Hook{Phase: p, Mode: abi.ModeTransform, Messages: abi.ViewAll})
	}
	return d
}

func (k *keeper) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) { return k.write(e), nil }

// replayState builds the state from snapshots and deltas, as a listener does.
func replayState(t *testing.T, events []agent.Event) (state map[string]any, snapshots, deltas int) {
	t.Helper()
	for _, e := range events {
		switch e.Type {
		case agent.EventStateSnapshot:
			state = maps.Clone(e.State)
			snapshots++
		case agent.EventStateDelta:
			if state == nil {
				t.Error("a delta came before a snapshot")
				state = make(map[string]any)
			}
			deltas++
			for _, op := range e.Patch {
				key := strings.NewReplacer("~1", "/", "~0", "~").Replace(op.Path[1:])
				if op.Op == "add" {
					state[key] = op.Value
				} else {
					delete(state, key)
				}
			}
		default:
		}
	}
	return state, snapshots, deltas
}

// TestStateIsShown: the first change is sent as a snapshot, later ones as deltas, and at
// the end of a step in which there were some comes a snapshot again.
func TestStateIsShown(t *testing.T) {
	t.Parallel()
	k := &keeper{phases: []abi.Phase{abi.StepStart, abi.AfterInference, abi.StepEnd}}
	k.write = func(e *abi.Event) *abi.Reply {
		up := abi.Update{Key: "n", Op: abi.OpSet, Value: fmt.Sprint(e.Phase, e.Step)}
		switch {
		case e.Step == 2 && e.Phase == abi.StepEnd:
			return nil
		case e.Phase == abi.AfterInference && e.Step == 1:
			up.Key = "a/b~c"
		case e.Phase == abi.AfterInference:
			up.Key = "run" // of no interest to the listener
		}
		return &abi.Reply{Updates: []abi.Update{up}}
	}
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "a")), says("done")}}, agent.Config{}, k)
	mustRun(t, b, request(user("go")))
	state, snapshots, deltas := replayState(t, b.events)
	if want := b.agent.Thread("t").State(); !reflect.DeepEqual(state, want) || len(want) != 2 {
		t.Errorf("the listener has %v, the thread %v", state, want)
	}
	// Step 1: snapshot, delta, delta, snapshot. Step 2: delta, snapshot.
	if snapshots != 3 || deltas != 3 {
		t.Errorf("%d snapshots, %d deltas", snapshots, deltas)
	}
	var last agent.EventType
	for _, e := range b.events {
		if e.Type == agent.EventStepEnd && last != agent.EventStateSnapshot {
			t.Errorf("step %d ends after %s", e.Step, last)
		}
		last = e.Type
	}
	if slices.Contains(b.types(), agent.EventMessagesSnapshot) {
		t.Error("the log was shown, and nobody had changed it")
	}
}

// TestMessagesAreShown: the log is shown after a step in which something came to it
// that no other event told.
func TestMessagesAreShown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at    abi.Phase
		reply func(e *abi.Event) *abi.Reply
		want  int
	}{
		"appended": {abi.StepStart, func(e *abi.Event) *abi.Reply {
			return effect(abi.Effect{Type: abi.EffectAppendMessages, Messages: []abi.Message{user("remember")}})
		}, 1},
		"masked": {abi.StepStart, func(e *abi.Event) *abi.Reply {
			return effect(abi.Effect{Type: abi.EffectMaskMessage, MessageID: e.Messages[0].ID})
		}, 1},
		"pinned": {abi.StepStart, func(e *abi.Event) *abi.Reply {
			return effect(abi.Effect{Type: abi.EffectPinMessage, MessageID: e.Messages[0].ID})
		}, 0},
		"result changed before it was told": {abi.AfterToolExecute, func(e *abi.Event) *abi.Reply {
			return effect(abi.Effect{Type: abi.EffectMaskMessage, MessageID: e.ResultMessageID})
		}, 0},
		"at the end": {abi.RunEnd, func(*abi.Event) *abi.Reply {
			return effect(abi.Effect{Type: abi.EffectAppendMessages, Messages: []abi.Message{user("bye")}})
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done := false
			k := &keeper{phases: []abi.Phase{c.at}, write: func(e *abi.Event) *abi.Reply {
				if done {
					return nil
				}
				done = true
				return c.reply(e)
			}}
			b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "a")), says("done")}}, agent.Config{}, k)
			mustRun(t, b, request(user("go")))
			if n := b.count(agent.EventMessagesSnapshot); n != c.want {
				t.Errorf("the log was shown %d times, want %d", n, c.want)
			}
			for _, e := range b.events {
				if e.Type == agent.EventMessagesSnapshot && c.at == abi.RunEnd && !reflect.DeepEqual(e.Log, b.agent.Thread("t").Messages()) {
					t.Errorf("shown %q", texts(e.Log))
				}
			}
		})
	}
}

// TestArrivedMessagesAreShown: what came through the inbox is in no other event.
func TestArrivedMessagesAreShown(t *testing.T) {
	t.Parallel()
	b := newBench(t, &script{answers: []abi.Message{says("done"), says("done")}}, agent.Config{})
	if err := b.agent.Deliver(t.Context(), "t", abi.Notice{Kind: abi.NoticeCompleted, TaskID: "bg_1", Result: "news"}); err != nil {
		t.Fatal(err)
	}
	mustRun(t, b, request(user("go")))
	mustRun(t, b, request(user("go on")))
	if n := b.count(agent.EventMessagesSnapshot); n != 1 {
		t.Errorf("the log was shown %d times", n)
	}
}

// TestEventNames: the names of types and fields are those of the run protocol.
func TestEventNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		event agent.Event
		want  string
	}{
		{agent.Event{Type: agent.EventStateDelta, Patch: []agent.PatchOp{{Op: "remove", Path: "/a"}}}, `"delta":[{"op":"remove","path":"/a","value":null}]`},
		{agent.Event{Type: agent.EventStateSnapshot, State: map[string]any{"a": 1}}, `"event_type":"state_snapshot","at":"0001-01-01T00:00:00Z","thread_id":"","run_id":"","snapshot":{"a":1}`},
		{agent.Event{Type: agent.EventMessagesSnapshot, Log: []abi.Message{user("hi")}}, `"messages":[{"role":"user"`},
		{agent.Event{Type: agent.EventActivitySnapshot, MessageID: "m", ActivityType: "plan", Content: 1, Replace: true}, `"message_id":"m","activity_type":"plan","content":1,"replace":true`},
		{agent.Event{Type: agent.EventActivityDelta, MessageID: "m", ActivityType: "plan", Patch: []agent.PatchOp{{Op: "add", Path: "/a", Value: 1}}}, `"patch":[{"op":"add","path":"/a","value":1}],"activity_type":"plan"`},
		{agent.Event{Type: agent.EventToolCallStreamDelta, Delta: "x"}, `"event_type":"tool_call_stream_delta"`},
		{agent.Event{Type: agent.EventReasoningEncrypted, EncryptedValue: "x"}, `"encrypted_value":"x"`},
		{agent.Event{Type: agent.EventTextDelta, Delta: "x"}, `"delta":"x"`},
		{agent.Event{Type: agent.EventStepEnd, Messages: 4}, `"messages":4`},
	} {
		got, err := json.Marshal(c.event)
		if err != nil || !strings.Contains(string(got), c.want) {
			t.Errorf("%s: %s, %v; want %s in it", c.event.Type, got, err, c.want)
		}
	}
}
