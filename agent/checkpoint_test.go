package agent_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/phases"
)

func mustPhases(t *testing.T, plugins ...phases.Plugin) *phases.Runtime {
	t.Helper()
	r, err := phases.New(phases.Config{Plugins: plugins})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// crashing is a store whose process ends after some checkpoints: later ones are not
// kept. It counts what is written.
type crashing struct {
	*agent.Memory
	left    int
	written []int
}

func (c *crashing) SaveCheckpoint(ctx context.Context, cp agent.Checkpoint) error {
	c.written = append(c.written, len(cp.Messages)+len(cp.Edited)+len(cp.Open))
	c.left--
	if c.left < 0 {
		return nil // The process is gone; no caller sees an error.
	}
	return c.Memory.SaveCheckpoint(ctx, cp)
}

// TestAnotherProcessGoesOn: wherever a process ends, another one finds a sound
// thread, and no tool is executed twice under two keys.
func TestAnotherProcessGoesOn(t *testing.T) {
	t.Parallel()
	for left := 1; left <= 12; left++ {
		t.Run(fmt.Sprint("after ", left), func(t *testing.T) {
			t.Parallel()
			store := agent.NewMemory()
			keys := map[string]string{} // idempotency key -> arguments
			use := func(b *bench) {
				b.tools.do = func(_ context.Context, call abi.ToolCall) (abi.ToolResult, error) {
					keys[call.IdempotencyKey] += fmt.Sprint(call.Arguments)
					return abi.ToolResult{Message: fmt.Sprint(call.Arguments)}, nil
				}
			}
			counter := func() *hook {
				return &hook{name: "count", phase: abi.StepEnd, mode: abi.ModeObserve, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
					return &abi.Reply{Updates: []abi.Update{{Key: "n", Op: abi.OpAdd, Value: int64(1)}}}, nil
				}}
			}
			answers := []abi.Message{says("", calls("c1", "echo", "a"), calls("c2", "shell", "b")), says("done")}
			one := newBench(t, &script{answers: answers}, agent.Config{Checkpoints: &crashing{Memory: store, left: left}}, asking(""), stateful{counter()})
			use(one)
			mustRun(t, one, request(user("go")))
			mustRun(t, one, decide("c2", agent.ActionResume, nil))

			two := newBench(t, &script{answers: []abi.Message{says("done"), says("done")}}, agent.Config{Checkpoints: store}, asking(""), stateful{counter()})
			use(two)
			thread, err := two.agent.Load(t.Context(), "t")
			if err != nil {
				t.Fatal(err)
			}
			if err := phases.CheckStructure(thread.Messages()); err != nil {
				t.Error(err)
			}
			r := mustRun(t, two, agent.Request{ThreadID: "t"})
			if r.Status == agent.StatusWaiting {
				r = mustRun(t, two, decide("c2", agent.ActionResume, nil))
			}
			if r.Status != agent.StatusDone || r.Response != "done" {
				t.Errorf("result %+v", r)
			}
			tools := toolTexts(two)
			if len(tools) > 0 && (tools[0] != "tool: a" && !strings.Contains(tools[0], "interrupted")) {
				t.Errorf("tools %q", tools)
			}
			for key, arguments := range keys {
				if key == "" || arguments != "a" && arguments != "b" && arguments != "bb" {
					t.Errorf("the key %q was used for %q", key, arguments)
				}
			}
		})
	}
}

// stateful is a hook with a counter of run scope.
type stateful struct{ *hook }

func (s stateful) Describe() abi.Description {
	d := s.hook.Describe()
	d.State = []abi.StateKey{{Name: "n", Scope: abi.ScopeRun, Merge: abi.MergeCommutative}}
	return d
}

// TestRunStateGoesOn: values of run scope last as long as the run, across a wait and a
// process, and not longer.
func TestRunStateGoesOn(t *testing.T) {
	t.Parallel()
	store := agent.NewMemory()
	var seen []any
	counter := func() phases.Plugin {
		return stateful{&hook{name: "count", phase: abi.StepStart, mode: abi.ModeObserve, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			seen = append(seen, e.State["n"])
			return &abi.Reply{Updates: []abi.Update{{Key: "n", Op: abi.OpAdd, Value: int64(1)}}}, nil
		}}}
	}
	one := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "a"))}}, agent.Config{Checkpoints: store}, asking(""), counter())
	mustRun(t, one, request(user("go")))
	two := newBench(t, &script{answers: []abi.Message{says("done"), says("done")}}, agent.Config{Checkpoints: store}, asking(""), counter())
	mustRun(t, two, decide("c1", agent.ActionResume, nil))
	mustRun(t, two, request(user("more")))
	if want := []any{nil, int64(1), nil}; !reflect.DeepEqual(seen, want) {
		t.Errorf("the plugin saw %v, want %v", seen, want)
	}
}

func TestCheckpointsCostWhatAStepWrites(t *testing.T) {
	t.Parallel()
	store := &crashing{Memory: agent.NewMemory(), left: 1 << 20}
	b := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: &chatter{answer: endless}}, Limits: agent.Limits{MaxRounds: 50}, Checkpoints: store})
	mustRun(t, b, request(user("go")))
	if most := slices.Max(store.written); most > 3 || len(store.written) < 100 {
		t.Errorf("a checkpoint holds up to %d messages, %d were written", most, len(store.written))
	}
	c, ok, err := store.LoadThread(t.Context(), "t")
	if err != nil || !ok || c.Run.Status != agent.StatusDone || c.Run.Reason != "stopped:max_rounds" || c.Run.Steps != 50 {
		t.Fatalf("%+v, %v", c.Run, err)
	}
	log := b.agent.Thread("t").Messages()
	if !slices.Equal(texts(c.Messages), texts(log)) || c.Run.Input != [2]int{0, 1} || c.Run.Output != [2]int{1, len(log)} || c.Run.Final != "say 50" {
		t.Errorf("kept %d messages of %d, ranges %v %v, final %q", len(c.Messages), len(log), c.Run.Input, c.Run.Output, c.Run.Final)
	}
	if m := c.Messages[3].Metadata; m["run_id"] != c.Run.RunID || m["step_index"] != int64(1) || c.Messages[0].Metadata != nil {
		t.Errorf("metadata %v", m)
	}
}

// TestTwoProcessesOnOneThread: the second one to write is refused, and its run fails.
func TestTwoProcessesOnOneThread(t *testing.T) {
	t.Parallel()
	store := agent.NewMemory()
	one := newBench(t, &script{answers: []abi.Message{says("a"), says("c")}}, agent.Config{Checkpoints: store})
	two := newBench(t, &script{answers: []abi.Message{says("b")}}, agent.Config{Checkpoints: store})
	for _, b := range []*bench{one, two} {
		if _, err := b.agent.Load(t.Context(), "t"); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, one, request(user("go")))
	r, err := two.agent.Run(t.Context(), request(user("go")))
	if !errors.Is(err, agent.ErrStale) || r.Termination.Type != agent.Failed || two.count(agent.EventRunFinish) != 1 {
		t.Errorf("result %+v, error %v", r, err)
	}
	if c, _, _ := store.LoadThread(t.Context(), "t"); len(c.Messages) != 2 {
		t.Errorf("kept %q", texts(c.Messages))
	}
}

// broken is a store that fails at the nth checkpoint.
type broken struct {
	*agent.Memory
	at int
}

func (b *broken) SaveCheckpoint(ctx context.Context, c agent.Checkpoint) error {
	b.at--
	if b.at == 0 {
		return errors.New("disk full")
	}
	return b.Memory.SaveCheckpoint(ctx, c)
}

// TestToldOnlyWhenItIsKept: a listener receives a result when it is durable, and a
// store that fails ends the run by its one exit.
func TestToldOnlyWhenItIsKept(t *testing.T) {
	t.Parallel()
	for at := 1; at <= 6; at++ {
		t.Run(fmt.Sprint("checkpoint ", at), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "a")), says("done")}}, agent.Config{Checkpoints: &broken{agent.NewMemory(), at}})
			r, err := b.agent.Run(t.Context(), request(user("go")))
			if err == nil || !strings.Contains(err.Error(), "storage failed: disk full") || r.Termination.Type != agent.Failed || r.Status != agent.StatusDone {
				t.Errorf("result %+v, error %v", r, err)
			}
			checkEvents(t, b.events)
			checkLog(t, b)
			if b.count(agent.EventRunFinish) != 1 {
				t.Error("not exactly one run_finish")
			}
		})
	}
}

func TestTransitions(t *testing.T) {
	t.Parallel()
	all := []agent.RunStatus{agent.StatusCreated, agent.StatusRunning, agent.StatusWaiting, agent.StatusDone}
	allowed := map[agent.RunStatus]string{
		agent.StatusCreated: "created running done", agent.StatusRunning: "running waiting done",
		agent.StatusWaiting: "waiting running done", agent.StatusDone: "done",
	}
	for _, from := range all {
		for _, to := range all {
			if want := slices.Contains(strings.Fields(allowed[from]), string(to)); from.To(to) != want {
				t.Errorf("%s to %s: %v", from, to, !want)
			}
		}
	}
	for want, end := range map[string]agent.Termination{
		"natural":            {Type: agent.NaturalEnd},
		"cancelled":          {Type: agent.Cancelled},
		"suspended":          {Type: agent.Suspended},
		"error":              {Type: agent.Failed},
		"stopped:max_rounds": {Type: agent.Stopped, Code: "max_rounds"},
		"blocked:no: never":  {Type: agent.Blocked, Detail: "no: never"},
	} {
		if got := end.Reason(); got != want {
			t.Errorf("%+v is worded %q, want %q", end, got, want)
		}
	}
}
