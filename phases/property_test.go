package phases_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/state"
)

// wild is a plugin whose replies are random, but a function of its seed and the
// event alone. How long it takes depends on the schedule.
type wild struct {
	desc     abi.Description
	seed     uint64
	schedule *rand.Rand // made for this plugin alone
	lock     chan struct{}
}

func newWild(seed, schedule uint64, i int) *wild {
	r := rand.New(rand.NewPCG(seed, uint64(i)))
	name := fmt.Sprintf("w%d", i)
	modes := []abi.Mode{abi.ModeObserve, abi.ModeTransform, abi.ModeTransform, abi.ModeGate}
	views := []abi.View{abi.ViewNone, abi.ViewLast, abi.ViewDelta, abi.ViewAll}
	policies := []abi.FailurePolicy{abi.FailIgnore, abi.FailIgnore, abi.FailQuarantine, abi.FailRun}
	w := &wild{seed: seed + uint64(i)<<32, schedule: rand.New(rand.NewPCG(schedule, uint64(i))), lock: make(chan struct{}, 1)}
	w.desc = abi.Description{Name: name, State: []abi.StateKey{
		{Name: "excl"}, {Name: "sum", Merge: abi.MergeCommutative, Scope: abi.ScopeThread}, {Name: "log", Merge: abi.MergeCommutative},
	}}
	w.desc.Actions = []abi.Handler{
		{Name: "act", Mode: modes[r.IntN(len(modes))], Public: r.IntN(2) == 0, OnFailure: policies[r.IntN(len(policies))]},
	}
	w.desc.Effects = []abi.Handler{{Name: "tell", Public: r.IntN(2) == 0, OnFailure: policies[r.IntN(3)]}}
	for _, p := range abi.Phases() {
		for range r.IntN(3) { // up to two hooks of one plugin at one phase
			w.desc.Hooks = append(w.desc.Hooks, abi.Hook{
				Phase: p, Mode: modes[r.IntN(len(modes))], Messages: views[r.IntN(len(views))],
				Priority: r.IntN(3) - 1, OnFailure: policies[r.IntN(len(policies))],
			})
		}
	}
	return w
}

func (w *wild) Describe() abi.Description { return w.desc }

func (w *wild) OnPhase(_ ctx, e *abi.Event) (*abi.Reply, error) {
	w.lock <- struct{}{}
	delay := time.Duration(w.schedule.IntN(1000)) * time.Microsecond
	<-w.lock
	sleep(delay)

	sum := fnv.New64a()
	untimed := *e
	untimed.NowMS = 0                     // A schedule has its own time.
	encoded, err := json.Marshal(untimed) // sorts maps
	if err != nil {
		return nil, err
	}
	_, _ = sum.Write(encoded)
	r := rand.New(rand.NewPCG(w.seed, sum.Sum64()))
	switch r.IntN(12) {
	case 0:
		return nil, errors.New("wild error")
	case 1:
		panic("wild panic")
	case 2:
		sleep(time.Minute) // deaf
		return nil, nil
	case 3:
		return nil, nil
	}
	if e.Effect != nil && r.IntN(4) != 0 {
		return nil, nil
	}
	return w.reply(r, e), nil
}

// action schedules for one of the plugins, now or later, sometimes for none.
func (w *wild) action(r *rand.Rand, e *abi.Event) abi.Action {
	keys := []string{"act", "w0/act", "w1/act", "w2/act", "none"}
	weights := []abi.Phase{e.Phase, e.Phase, abi.Phases()[r.IntN(9)]}
	return abi.Action{Phase: weights[r.IntN(3)], Key: keys[r.IntN(len(keys))], Payload: r.IntN(1000)}
}

func (w *wild) reply(r *rand.Rand, e *abi.Event) *abi.Reply {
	reply := &abi.Reply{Updates: []abi.Update{{Key: "sum", Op: abi.OpAdd, Value: 1}}}
	if r.IntN(2) == 0 {
		n, _ := e.State["excl"].(int64)
		reply.Updates = append(reply.Updates, abi.Update{Key: "excl", Op: abi.OpSet, Value: n + 1})
	}
	if r.IntN(4) == 0 {
		reply.Updates = append(reply.Updates, abi.Update{Key: "log", Op: abi.OpAppend, Value: list{r.IntN(9), fields{"x": 1}}})
	}
	if r.IntN(4) == 0 {
		reply.Actions = append(reply.Actions, w.action(r, e))
	}
	for range r.IntN(3) {
		reply.Effects = append(reply.Effects, w.effect(r, e.Phase))
	}
	if r.IntN(3) < 2 && e.Phase == abi.ToolGate {
		actions := []abi.GateAction{abi.GateAllow, abi.GateBlock, abi.GateSuspend, abi.GateSetResult}
		reply.Gate = &abi.GateDecision{
			Action: actions[r.IntN(4)], Ticket: &abi.SuspendTicket{ID: "t"}, Result: &abi.ToolResult{Status: abi.ToolSuccess},
		}
	}
	return reply
}

func (w *wild) effect(r *rand.Rand, at abi.Phase) abi.Effect {
	id := fmt.Sprintf("m%d", r.IntN(10))
	pairs := [][]abi.Message{
		{user("")}, {calls("", "x"), result("", "x")}, {calls("", "x")}, {result("", "c1")}, {calls("", "x"), user(""), result("", "x")}, {{Role: "king"}},
	}
	kind := r.IntN(12)
	verbs := map[abi.Phase]int{abi.ToolGate: 7, abi.BeforeToolExecute: 7, abi.AfterInference: 8, abi.AfterToolExecute: 9}
	if n := verbs[at]; n > 0 && r.IntN(2) == 0 {
		kind = n
	}
	switch kind {
	case 7:
		return abi.Effect{Type: abi.EffectRewriteCall, Arguments: fields{"by": w.desc.Name, "n": r.IntN(3)}}
	case 8:
		return abi.Effect{Type: abi.EffectReplaceResponse, Message: &abi.Message{Content: text("answered by " + w.desc.Name), ToolCalls: []abi.ToolCall{
			{ID: []string{"o1", "", "made up"}[r.IntN(3)], Name: []string{"tool", "none"}[r.IntN(2)]},
		}}}
	case 9:
		return abi.Effect{Type: abi.EffectReplaceResult, Result: &abi.ToolResult{
			Status: []abi.ToolStatus{abi.ToolSuccess, abi.ToolError, abi.ToolPending}[r.IntN(3)], Message: "found by " + w.desc.Name,
		}}
	case 10:
		return abi.Effect{Type: abi.EffectNotify, EventType: "wild", Payload: r.IntN(100)}
	case 0:
		return abi.Effect{Type: abi.EffectAppendMessages, Messages: pairs[r.IntN(len(pairs))]}
	case 1:
		return abi.Effect{Type: abi.EffectReplaceMessage, MessageID: id, Content: text("replaced by " + w.desc.Name)}
	case 2:
		return abi.Effect{Type: abi.EffectMaskMessage, MessageID: id}
	case 3:
		return abi.Effect{Type: abi.EffectPinMessage, MessageID: id}
	case 4:
		return abi.Effect{Type: abi.EffectExcludeTools, Tools: []string{w.desc.Name, "tool"}[r.IntN(2):]}
	case 5:
		return abi.Effect{Type: abi.EffectStop, Code: w.desc.Name}
	case 6:
		return abi.Effect{Type: abi.EffectCustom, Key: []string{"tell", "w0/tell", "w3/tell"}[r.IntN(3)], Payload: r.IntN(100)}
	default:
		return abi.Effect{Type: abi.EffectEmit, EventType: "wild", Payload: r.IntN(100)}
	}
}

// trace is everything that a run came to.
type trace struct {
	outcomes []phases.Outcome
	errs     []string
	state    map[string]any
	records  []phases.Record
	letters  int
}

// play fires two steps of a run at wild plugins and checks what must hold in
// every run.
func play(t *testing.T, seed, schedule uint64) trace {
	t.Helper()
	var plugins []phases.Plugin
	for i := range 4 {
		plugins = append(plugins, newWild(seed, schedule, i))
	}
	g := build(t, phases.Config{HookTimeout: time.Second}, plugins...)
	f := phases.Frame{Run: abi.RunIdentity{RunID: "r"}, Messages: []abi.Message{
		user("m0"), calls("m1", "c1"), result("m2", "c1"), user("m3"), calls("m4"), user("m5"),
	}}
	var tr trace
	for f.Step = range 3 {
		for _, f.Phase = range abi.Phases() {
			in := f
			if f.Phase == abi.ToolGate || f.Phase == abi.BeforeToolExecute || f.Phase == abi.AfterToolExecute {
				in.Messages = slices.Concat(f.Messages, []abi.Message{calls("open", "o1")})
				in.Call = &abi.ToolCall{ID: "o1", Name: "tool"}
			}
			wildFrame(&in)
			before := snapshot(t, in)
			out, err := g.Fire(t.Context(), g.state, in)
			if after := snapshot(t, in); before != after {
				t.Fatalf("seed %d: %s changed its frame", seed, f.Phase)
			}
			if err != nil {
				tr.errs = append(tr.errs, err.Error())
				if hookFailed(err) && !reflect.DeepEqual(out, phases.Outcome{Messages: in.Messages}) {
					t.Errorf("seed %d: %s failed and left %+v", seed, f.Phase, out)
				}
			}
			if !reflect.DeepEqual(replay(in, out), out.Messages) {
				t.Fatalf("seed %d: %s: the edits do not explain the messages: %+v", seed, f.Phase, out)
			}
			tr.outcomes = append(tr.outcomes, out)
			if in.Call == nil {
				if err := phases.CheckStructure(out.Messages); err != nil {
					t.Fatalf("seed %d: %s: %v", seed, f.Phase, err)
				}
				f.Messages = out.Messages
				checkAnswer(t, seed, out.Response)
			} else if last := out.Messages[len(out.Messages)-1]; in.Result == nil && (last.ID != "open" || len(last.ToolCalls) != 1) {
				t.Fatalf("seed %d: %s broke an open pair: %+v", seed, f.Phase, last)
			}
		}
	}
	tr.state, tr.records = g.state.Store().Export().Values, g.Records()
	letters, _ := g.state.DeadLetters()
	tr.letters = len(letters)
	for i := range tr.records {
		tr.records[i].Duration, tr.records[i].At = 0, time.Time{}
		if tr.records[i].Quarantined && tr.records[i].Attempt == 0 {
			tr.records[i].Refused = nil // It says until when, which is another time in each play.
		}
	}
	checkSums(t, seed, &tr)
	sleep(time.Hour) // lets the deaf hooks end
	return tr
}

// wildFrame adds what belongs to the phase.
func wildFrame(f *phases.Frame) {
	f.HasTool = func(name string) bool { return name == "tool" }
	f.CheckArguments = func(v any) error {
		if m, ok := v.(map[string]any); !ok || m["n"] == int64(2) {
			return errors.New("n is too large")
		}
		return nil
	}
	switch f.Phase {
	case abi.AfterInference:
		m := calls("answer", "o1")
		f.Response = &abi.Response{Message: m}
	case abi.AfterToolExecute:
		f.Result, f.ResultMessageID = &abi.ToolResult{CallID: "o1", ToolName: "tool", Status: abi.ToolSuccess, Message: "done"}, "answered"
		f.Messages = append(f.Messages, result(f.ResultMessageID, "o1"))
	default:
	}
}

// checkAnswer checks an answer that plugins made: it has the shape of one, and its calls
// are the model's or have fresh ids.
func checkAnswer(t *testing.T, seed uint64, r *abi.Response) {
	t.Helper()
	if r == nil {
		return
	}
	if r.Message.ID != "answer" || r.Message.Role != abi.RoleAssistant {
		t.Fatalf("seed %d: answer %+v", seed, r.Message)
	}
	for _, c := range r.Message.ToolCalls {
		if c.ID != "o1" && !strings.HasPrefix(c.ID, "call_new") || c.Name != "tool" {
			t.Fatalf("seed %d: a call that no plugin may make: %+v", seed, c)
		}
	}
}

// hookFailed reports whether it was a hook that failed the phase, and not an action,
// which comes after the hooks' commit.
func hookFailed(err error) bool {
	hookErr, ok := errors.AsType[*phases.HookError](err)
	return ok && hookErr.Handler == ""
}

// replay does what a caller would do with an outcome: it appends and edits.
func replay(f phases.Frame, out phases.Outcome) []abi.Message {
	messages := slices.Concat(f.Messages, out.Appended)
	for _, e := range out.Edits {
		for i := range messages {
			if messages[i].ID == e.MessageID {
				messages[i] = e.Message
			}
		}
	}
	return messages
}

// checkSums finds lost and doubled updates: the commutative sum of a plugin is the
// number of its additions that are recorded as applied.
func checkSums(t *testing.T, seed uint64, tr *trace) {
	t.Helper()
	applied := make(map[string]int64)
	for _, rec := range tr.records {
		for _, c := range rec.Applied {
			if c.What == string(abi.OpAdd) {
				applied[c.Target]++
			}
		}
		if len(rec.Applied) > 0 && (rec.Err != "" || len(rec.Refused) > 0 || rec.Deferred != "") {
			t.Errorf("seed %d: half applied: %+v", seed, rec)
		}
	}
	for key, want := range applied {
		if got := tr.state[key]; got != want {
			t.Errorf("seed %d: %s is %v, but %d additions were applied", seed, key, got, want)
		}
	}
}

func snapshot(t *testing.T, f phases.Frame) string {
	t.Helper()
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func checkSeed(t *testing.T, seed uint64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		first, second := play(t, seed, 1), play(t, seed, 2)
		if !reflect.DeepEqual(first, second) {
			t.Errorf("seed %d: two schedules give different runs\n%+v\n%+v", seed, first, second)
		}
	})
}

// Whatever plugins do, and in whatever order they finish: the outcome is the same,
// no update is lost, the structure holds, and what was passed in is untouched.
func TestWildPlugins(t *testing.T) {
	t.Parallel()
	n := uint64(150)
	if testing.Short() {
		n = 20
	}
	for seed := range n {
		checkSeed(t, seed)
	}
}

// The wild plugins must not be so wild that nothing ever happens.
func TestWildPluginsDoSomething(t *testing.T) {
	t.Parallel()
	seen := make(map[string]int)
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(60) {
			tr := play(t, seed, 1)
			seen["failed phase"] += len(tr.errs)
			seen["dead letter"] += tr.letters
			for _, out := range tr.outcomes {
				seen["edit"] += len(out.Edits)
				seen["appended"] += len(out.Appended)
				seen["action"] += out.Report.Processed
				seen["failed action"] += out.Report.Failed
				seen["waiting action"] += out.Report.Skipped
				seen["effect"] += out.Report.Effects
				seen["notification"] += len(out.Notifications)
				for what, is := range map[string]bool{"rewritten": out.Rewrite != nil, "rewritten twice": out.Rewrite != nil && len(out.Rewrite.By) > 1, "answer": out.Response != nil, "result": out.Result != nil} {
					if is {
						seen[what]++
					}
				}
				seen["failed effect"] += out.Report.EffectsFailed
				seen["rounds"] += max(0, out.Report.Rounds-1)
				if out.Gate != nil {
					seen[string(out.Gate.Decision.Action)]++
				}
			}
			for _, rec := range tr.records {
				seen["refused"] += len(rec.Refused)
				for what, is := range map[string]bool{
					"deferred": rec.Deferred != "", "second call": rec.Attempt == 2, "quarantined": rec.Quarantined, "overridden": rec.Overridden,
				} {
					if is {
						seen[what]++
					}
				}
			}
		}
	})
	for _, what := range []string{
		"rewritten", "rewritten twice", "answer", "result", "notification",
		"action", "failed action", "waiting action", "effect", "failed effect", "rounds", "dead letter", "failed phase", "edit", "appended", "allow", "block", "suspend", "set_result", "refused", "deferred", "second call", "quarantined", "overridden",
	} {
		if seen[what] == 0 {
			t.Errorf("no run had: %s (%v)", what, seen)
		}
	}
}

func FuzzWildPlugins(f *testing.F) {
	f.Add(uint64(1 << 40))
	f.Add(uint64(1099511628045))
	f.Add(uint64(1099511627435))
	f.Fuzz(func(t *testing.T, seed uint64) { checkSeed(t, seed) })
}

// Whatever is committed alongside the phases of a run: revisions come in order, no
// addition is lost, no phase fails for it.
func TestWildCommitters(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			p := twice(plug("p", abi.Hook{Phase: abi.BeforeInference, OnFailure: abi.FailRun}, func(_ ctx, e *abi.Event) (*abi.Reply, error) {
				n, _ := e.State["excl"].(int64)
				return &abi.Reply{Updates: []abi.Update{{Key: "excl", Op: abi.OpSet, Value: n + 1}, {Key: "comm", Op: abi.OpAdd, Value: 1}}}, nil
			}))
			g := build(t, phases.Config{}, p)
			revisions := watchOrder(t, g.state.Store())
			const committers, commits, fires = 4, 50, 30
			var wg sync.WaitGroup
			for range committers {
				pauses := rand.New(rand.NewPCG(seed, r.Uint64()))
				wg.Go(func() { commitMany(t, g, pauses, commits) })
			}
			for range fires {
				g.fire(t, step(1))
			}
			wg.Wait()
			want := int64(committers*commits + 2*fires)
			g.wantState(t, "p/excl", want)
			g.wantState(t, "p/comm", want)
			if got := g.state.Revision(); got != revisions() || got != committers*commits+fires {
				t.Errorf("revision %d, watched %d", got, revisions())
			}
		})
	}
}

// watchOrder checks that revisions come one after the other, and returns the last.
func watchOrder(t *testing.T, s *state.Store) func() uint64 {
	t.Helper()
	var last atomic.Uint64
	var sums [2]int64
	if _, err := s.Watch(func(c state.Change) {
		if c.Previous != last.Load() || c.Revision != c.Previous+1 {
			t.Errorf("received %d to %d after %d", c.Previous, c.Revision, last.Load())
		}
		for i, key := range []string{"p/excl", "p/comm"} {
			v, _ := c.Snapshot.Read(key)
			n, _ := v.(int64)
			if n <= sums[i] {
				t.Errorf("revision %d: %s went from %d to %d", c.Revision, key, sums[i], n)
			}
			sums[i] = n
		}
		last.Store(c.Revision)
	}); err != nil {
		t.Fatal(err)
	}
	return last.Load
}

// commitMany adds one to both keys, from what it read or by an operation.
func commitMany(t *testing.T, g *rig, r *rand.Rand, n int) {
	t.Helper()
	for range n {
		add := state.Update{Key: "p/comm", Op: abi.OpAdd, Value: 1}
		for {
			now := g.state.Store().Snapshot()
			v, _ := now.Read("p/excl")
			excl, _ := v.(int64)
			c := phases.Command{Batch: state.Batch{Base: new(now.Revision()), Updates: []state.Update{{Key: "p/excl", Op: abi.OpSet, Value: excl + 1}, add}}}
			if r.IntN(2) == 0 {
				c.Batch = state.Batch{Updates: []state.Update{{Key: "p/excl", Op: abi.OpAdd, Value: 1}, add}}
			}
			_, err := g.Submit(t.Context(), g.state, c)
			if err == nil {
				break
			}
			if !errors.Is(err, state.ErrConflict) {
				t.Error(err)
				return
			}
		}
		for range r.IntN(5) {
			runtime.Gosched()
		}
	}
}
