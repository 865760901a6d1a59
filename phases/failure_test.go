package phases_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
)

var errBroken = errors.New("broken")

// sleep waits without regard for the context. It is for fake time.
func sleep(d time.Duration) { <-time.After(d) }

// How a hook can fail, and what is then known of it.
func TestFailures(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer phasestest.Answer
		is     error
		text   string
		took   time.Duration
	}{
		"error":   {answer: phasestest.Fail(errBroken), is: errBroken, text: "broken"},
		"panic":   {answer: func(context.Context, *abi.Event) (*abi.Reply, error) { panic("oh\x00no") }, is: phases.ErrPanic, text: "panicked: oh no"},
		"goexit":  {answer: func(context.Context, *abi.Event) (*abi.Reply, error) { runtime.Goexit(); return nil, nil }, is: phases.ErrPanic, text: "ended its goroutine"},
		"refused": {answer: updates(abi.Update{Key: "x"}, abi.Update{Key: "y"}), is: phases.ErrRefused, text: `reply refused: update 0 "x": the plugin's description does not declare this state key (and 1 more)`},
		"late": {answer: func(context.Context, *abi.Event) (*abi.Reply, error) {
			sleep(time.Second + time.Millisecond)
			return &abi.Reply{}, nil
		}, is: phases.ErrDeadline, text: "it answered too late", took: time.Second + time.Millisecond},
		"obedient": {answer: func(ctx context.Context, _ *abi.Event) (*abi.Reply, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, is: context.DeadlineExceeded, text: "missed its deadline", took: time.Second},
		"deaf": {answer: func(context.Context, *abi.Event) (*abi.Reply, error) {
			sleep(time.Hour)
			return &abi.Reply{}, nil
		}, is: phases.ErrDeadline, text: "ignored its cancelled context and was abandoned", took: 1100 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := phases.Config{HookTimeout: time.Second, Grace: 100 * time.Millisecond}
				bad := plug("bad", abi.Hook{Phase: abi.BeforeInference, OnFailure: abi.FailRun}, test.answer)
				good := plug("good", abi.Hook{Phase: abi.BeforeInference}, count)
				g := build(t, cfg, bad, good)
				start := time.Now()
				out, err := g.Fire(t.Context(), g.state, step(1))
				if took := time.Since(start); took != test.took {
					t.Errorf("the phase took %v, want %v", took, test.took)
				}
				var hookErr *phases.HookError
				if !errors.As(err, &hookErr) || hookErr.Plugin != "bad" || hookErr.Phase != abi.BeforeInference || !errors.Is(err, test.is) {
					t.Fatalf("error %v", err)
				}
				rec := g.only(t, "bad")
				if !strings.Contains(rec.Err, test.text) || rec.Duration != test.took || rec.Attempt != 1 {
					t.Errorf("record %+v, want an error with %q", rec, test.text)
				}
				// Nothing of the phase is applied, and the record says so.
				if len(out.Emitted) != 0 || g.state.Revision() != 0 || len(out.Messages) != 1 {
					t.Errorf("outcome %+v", out)
				}
				if rec := g.only(t, "good"); len(rec.Applied) != 0 || len(rec.Refused) != 1 || rec.Err != "" {
					t.Errorf("record of the other hook: %+v", rec)
				}

				// The same failure, ignored.
				bad.Desc.Hooks[0].OnFailure = ""
				g = build(t, cfg, bad, good)
				g.fire(t, step(1))
				g.wantState(t, "good/excl", int64(1))
				sleep(2 * time.Hour) // lets the deaf one end
			})
		})
	}
}

// The failure of a second call is a failure too, and takes the first round's
// work back.
func TestSecondCallFails(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	p := twice(plug("p", abi.Hook{Phase: abi.BeforeInference, OnFailure: abi.FailRun}, func(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
		if n.Add(1) == 3 {
			return nil, errBroken
		}
		return count(ctx, e)
	}))
	g := build(t, phases.Config{}, p)
	out, err := g.Fire(t.Context(), g.state, step(1))
	if !errors.Is(err, errBroken) || g.state.Revision() != 0 || len(out.Emitted) != 0 {
		t.Errorf("error %v, revision %d, outcome %+v", err, g.state.Revision(), out)
	}
	if recs := g.Of("p"); len(recs) != 3 || recs[2].Attempt != 2 || len(recs[0].Applied) != 0 {
		t.Errorf("records %+v", recs)
	}
}

func TestQuarantine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		works := false
		p := plug("p", abi.Hook{Phase: abi.BeforeInference, OnFailure: abi.FailQuarantine}, func(context.Context, *abi.Event) (*abi.Reply, error) {
			if works {
				return nil, nil
			}
			return nil, errBroken
		})
		g := build(t, phases.Config{Limits: phases.Limits{QuarantineBackOff: time.Minute, QuarantineMax: 3 * time.Minute}}, p)
		called := func() bool {
			before := len(p.Events())
			g.fire(t, step(1))
			return len(p.Events()) > before
		}
		expect := func(want bool) {
			t.Helper()
			if got := called(); got != want {
				t.Fatalf("called: %v, want %v", got, want)
			}
		}
		expect(true)
		expect(true)
		works = true
		expect(true) // one success ends the row
		works = false
		expect(true)
		expect(true)
		expect(true)
		recs := g.Records()
		if last := recs[len(recs)-1]; !last.Quarantined || last.Attempt != 1 || recs[len(recs)-2].Quarantined {
			t.Errorf("the third failure is recorded as %+v", last)
		}
		for _, wait := range []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute, 3 * time.Minute} {
			expect(false)
			sleep(wait - time.Second)
			expect(false)
			sleep(time.Second)
			expect(true)
		}
		recs = g.Records()
		if skipped := recs[len(recs)-2]; !skipped.Quarantined || skipped.Attempt != 0 || len(skipped.Refused) != 1 || skipped.Err != "" {
			t.Errorf("a skipped hook is recorded as %+v", skipped)
		}
		sleep(3 * time.Minute)
		works = true
		expect(true)
		expect(true)
	})
}

// Abandoned calls are bounded: at the limit the plugin's hooks fail without a
// call, until one of the abandoned returns.
func TestAbandonedCallsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := plug("p", abi.Hook{Phase: abi.ToolGate, Mode: abi.ModeGate}, func(context.Context, *abi.Event) (*abi.Reply, error) {
			<-release
			return nil, nil
		})
		g := build(t, phases.Config{HookTimeout: time.Second, Limits: phases.Limits{Abandoned: 2}}, p)
		for range 3 {
			if out := g.fire(t, phasestest.Frame(abi.ToolGate)); out.Gate == nil || out.Gate.Decision.Action != abi.GateBlock {
				t.Fatalf("gate %+v", out.Gate)
			}
		}
		if n := len(p.Events()); n != 2 {
			t.Errorf("%d calls, want 2", n)
		}
		if recs := g.Records(); recs[2].Attempt != 0 || !strings.Contains(recs[2].Err, "2 earlier calls of the plugin are still running") {
			t.Errorf("record %+v", recs[2])
		}
		close(release)
		synctest.Wait()
		if out := g.fire(t, phasestest.Frame(abi.ToolGate)); out.Gate != nil {
			t.Errorf("gate %+v after the calls returned", out.Gate)
		}
	})
}

// Hooks share the deadline of the phase; many slow ones are not slower.
func TestDeadlineIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var plugins []phases.Plugin
		for _, name := range []string{"a", "b", "c"} {
			plugins = append(plugins, plug(name, abi.Hook{Phase: abi.BeforeInference}, func(context.Context, *abi.Event) (*abi.Reply, error) {
				sleep(3 * time.Second)
				return nil, nil
			}))
		}
		g := build(t, phases.Config{}, plugins...)
		start := time.Now()
		g.fire(t, step(1))
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("the phase took %v", took)
		}
	})
}

// What became of a plugin's calls is counted.
func TestStats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := abi.Hook{Phase: abi.BeforeInference, OnFailure: abi.FailQuarantine}
		over := effects(abi.Effect{Type: abi.EffectStop, Code: "x"})
		g := build(t, phases.Config{HookTimeout: time.Second},
			plug("a", h, over), twice(plug("b", h, count)),
			plug("c", h, phasestest.Sequence(func(context.Context, *abi.Event) (*abi.Reply, error) { sleep(time.Hour); return nil, nil }, silent)))
		for range 4 {
			g.fire(t, step(1))
		}
		got := g.Stats()
		for name, want := range map[string]phases.Stats{
			"a": {Calls: 3, Skipped: 1, Failed: 3, Refused: 3}, "b": {Calls: 12, Deferred: 4}, "c": {Calls: 4, Failed: 1, Running: 1},
		} {
			if got[name] != want {
				t.Errorf("%s: %+v, want %+v", name, got[name], want)
			}
		}
		sleep(2 * time.Hour)
		if n := g.Stats()["c"].Running; n != 0 {
			t.Errorf("%d calls still run", n)
		}
	})
}
