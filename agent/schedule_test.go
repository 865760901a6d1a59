package agent_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

// schedule delays whatever runs at the same time, each time in another order.
type schedule struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func (s *schedule) delay() {
	s.mu.Lock()
	d := time.Duration(s.rng.IntN(50)) * time.Millisecond
	s.mu.Unlock()
	<-time.After(d)
}

// wild is a plugin with two hooks at each phase, which collide with each other and
// with those of other plugins. What it answers follows from the event alone.
type wild struct {
	*schedule

	name string
	seed uint64
}

func (w *wild) Describe() abi.Description {
	d := abi.Description{
		Name: w.name, Version: "1", ABI: abi.VersionRange{Min: 1, Max: 1},
		State: []abi.StateKey{{Name: "count", Scope: abi.ScopeThread, Merge: abi.MergeCommutative}, {Name: "list", Scope: abi.ScopeThread}},
	}
	for _, p := range abi.Phases() {
		h := abi.Hook{Phase: p, Mode: abi.ModeGate, Messages: abi.ViewLast, OnFailure: abi.FailIgnore}
		d.Hooks = append(d.Hooks, h, h)
	}
	return d
}

func (w *wild) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	w.delay()
	h := fnv.New64a()
	fmt.Fprint(h, w.seed, e.Phase, e.Step, e.MessagesTotal)
	if e.Call != nil {
		fmt.Fprint(h, e.Call.ID)
	}
	n := h.Sum64() % 100
	list, _ := e.State["list"].([]any)
	r := &abi.Reply{Updates: []abi.Update{
		{Key: "count", Op: abi.OpAdd, Value: int64(1)},
		{Key: "list", Op: abi.OpSet, Value: append(append([]any{}, list...), int64(n))},
	}}
	switch {
	case n < 10:
		return nil, errors.New("a bad day")
	case n < 15:
		panic("a bad day")
	case n < 25 && len(e.Messages) > 0:
		r.Effects = append(r.Effects, abi.Effect{Type: abi.EffectMaskMessage, MessageID: e.Messages[0].ID, Text: "[" + w.name + "]"})
	case n < 30:
		r.Effects = append(r.Effects, abi.Effect{Type: abi.EffectAppendMessages, Messages: []abi.Message{user(w.name)}})
	case n < 35:
		r.Effects = append(r.Effects, abi.Effect{Type: abi.EffectEmit, EventType: "news", Payload: int64(len(list))})
	case n < 38:
		r.Effects = append(r.Effects, abi.Effect{Type: abi.EffectStop, Code: w.name})
	case n < 45 && e.Phase == abi.ToolGate:
		r.Gate = &abi.GateDecision{Action: abi.GateSuspend, Ticket: &abi.SuspendTicket{ID: w.name + "/" + e.Call.ID}}
	case n < 50 && e.Phase == abi.ToolGate:
		r.Gate = &abi.GateDecision{Action: abi.GateBlock, Reason: w.name}
	}
	return r, nil
}

// dice is a model and a tool runner that follow from a seed.
type dice struct {
	*schedule

	rng *rand.Rand
	n   int
}

func (d *dice) Infer(context.Context, llm.Request) (*abi.Response, error) {
	d.delay()
	d.n++
	m := says(fmt.Sprint("answer ", d.n))
	for i := range max(0, d.rng.IntN(6)-2) {
		m.ToolCalls = append(m.ToolCalls, calls(fmt.Sprint("c", d.n, "_", i), "echo", "x"))
	}
	if d.rng.IntN(30) == 0 {
		return nil, &llm.Error{Kind: llm.KindContentFiltered}
	}
	return &abi.Response{Model: "dice", Message: m, Usage: &abi.Usage{TotalTokens: 1}}, nil
}

func (d *dice) Tools() []abi.Tool { return []abi.Tool{{Name: "echo"}} }

func (d *dice) CallTool(_ context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	d.delay()
	return abi.ToolResult{Message: call.ID + " " + call.IdempotencyKey}, nil
}

// story is what can be seen of a world.
type story struct {
	events  []agent.Event
	log     []abi.Message
	state   map[string]any
	saved   agent.Checkpoint
	records []phases.Record
	ends    map[agent.TerminationType]int
}

// live runs a world in one schedule.
func live(t *testing.T, seed, order uint64) story {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &schedule{rng: rand.New(rand.NewPCG(order, 2))}
	var plugins []phases.Plugin
	for i := range 1 + rng.IntN(3) {
		plugins = append(plugins, &wild{schedule: s, name: fmt.Sprint("p", i), seed: rng.Uint64()})
	}
	out := story{ends: map[agent.TerminationType]int{}}
	n := 0
	id := func() string { n++; return fmt.Sprint("id", n) }
	then := time.Unix(0, 0)
	rt, err := phases.New(phases.Config{
		Plugins: plugins, NewID: id, Record: func(r phases.Record) { out.records = append(out.records, r) },
	})
	if err != nil {
		t.Fatal(err)
	}
	model, store := &dice{schedule: s, rng: rand.New(rand.NewPCG(seed, 3))}, agent.NewMemory()
	a, err := agent.New(agent.Config{
		Profile: agent.Profile{Model: model, Tools: model, Phases: rt}, NewID: id, Now: func() time.Time { return then }, Checkpoints: store, Limits: agent.Limits{MaxRounds: 5},
		Execution: agent.Execution{ToolMode: []agent.ToolMode{agent.Sequential, agent.ParallelBatch, agent.ParallelStreaming}[rng.IntN(3)]},
		Listen: func(_ context.Context, e agent.Event) {
			e.DurationMS = 0
			out.events = append(out.events, e)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var tickets []agent.Ticket
	for i := range 4 {
		req := agent.Request{ThreadID: "t"}
		for _, k := range tickets {
			req.Decisions = append(req.Decisions, agent.Decision{
				ID: "d" + k.ID, Target: k.ID, Action: []agent.DecisionAction{agent.ActionResume, agent.ActionCancel}[rng.IntN(2)], Result: int64(i),
			})
		}
		if len(tickets) == 0 || rng.IntN(3) == 0 {
			req.Messages = []abi.Message{user(fmt.Sprint("question ", i))}
		}
		r, err := a.Run(t.Context(), req)
		if r.RunID == "" {
			t.Fatal(err)
		}
		tickets = r.Tickets
		out.ends[r.Termination.Type]++
	}
	out.log, out.state = a.Thread("t").Messages(), a.Thread("t").State()
	if out.saved, _, err = store.LoadThread(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	out.saved.Run.Active = 0
	return out
}

// TestSchedulesDoNotMatter: random plugins over random runs come to the same,
// whichever is faster; no update is lost; revisions only grow; the log stays sound, and
// each run has one end. MORTISE_SEED repeats one world.
func TestSchedulesDoNotMatter(t *testing.T) {
	t.Parallel()
	first, worlds := rand.Uint64(), uint64(150)
	if s := os.Getenv("MORTISE_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, worlds = n, 1
	}
	ends := map[agent.TerminationType]int{}
	deferred := 0
	for seed := first; seed != first+worlds; seed++ {
		var one, other story
		synctest.Test(t, func(t *testing.T) { one = live(t, seed, 1) })
		synctest.Test(t, func(t *testing.T) { other = live(t, seed, seed+2) })
		compareStories(t, one, other)
		deferred += checkStory(t, one)
		for end, n := range one.ends {
			ends[end] += n
		}
		if t.Failed() {
			t.Fatalf("repeat this world with MORTISE_SEED=%d", seed)
		}
	}
	t.Logf("ends %v, %d replies collided", ends, deferred)
	if worlds > 1 && (min(ends[agent.NaturalEnd], ends[agent.Stopped], ends[agent.Suspended], ends[agent.Blocked], ends[agent.Failed]) == 0 || deferred == 0) {
		t.Errorf("the worlds are too tame: ends %v, %d replies collided", ends, deferred)
	}
}

func compareStories(t *testing.T, one, other story) {
	t.Helper()
	if len(one.events) != len(other.events) {
		t.Errorf("%d events in one schedule, %d in the other", len(one.events), len(other.events))
	}
	for i := range min(len(one.events), len(other.events)) {
		if !reflect.DeepEqual(one.events[i], other.events[i]) {
			t.Errorf("event %d:\n%+v\n%+v", i, one.events[i], other.events[i])
			return
		}
	}
	for what, pair := range map[string][2]any{"log": {one.log, other.log}, "state": {one.state, other.state}, "checkpoint": {one.saved, other.saved}} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s:\n%+v\n%+v", what, pair[0], pair[1])
		}
	}
}

// checkStory returns how many replies collided.
func checkStory(t *testing.T, s story) (deferred int) {
	t.Helper()
	checkEvents(t, s.events)
	starts, finishes := 0, 0
	for _, e := range s.events {
		switch e.Type {
		case agent.EventRunStart:
			starts++
		case agent.EventRunFinish:
			finishes++
		default:
		}
	}
	if starts != 4 || finishes != 4 {
		t.Errorf("4 runs start %d times and finish %d times", starts, finishes)
	}
	if err := phases.CheckStructure(s.log); err != nil {
		t.Error(err)
	}
	if !reflect.DeepEqual(texts(s.log), texts(s.saved.Messages)) {
		t.Errorf("the log has\n%q\nsaved are\n%q", texts(s.log), texts(s.saved.Messages))
	}
	added := map[string]int64{}
	revisions := map[string]uint64{}
	for _, r := range s.records {
		if r.Deferred != "" {
			deferred++
		}
		for _, c := range r.Applied {
			if c.What == string(abi.OpAdd) {
				added[c.Target]++
			}
		}
		if r.Revision < revisions[r.Run.RunID] && r.Attempt > 0 {
			t.Errorf("revision %d after %d", r.Revision, revisions[r.Run.RunID])
		}
		revisions[r.Run.RunID] = max(revisions[r.Run.RunID], r.Revision)
	}
	for key, n := range added {
		if s.state[key] != n {
			t.Errorf("%d updates of %s were applied, its value is %v", n, key, s.state[key])
		}
	}
	return deferred
}
