package phases_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
	"github.com/mortise-dev/mortise/phases/state"
)

func bump(key string, n int) phases.Command {
	return phases.Command{By: "background", Batch: state.Batch{Updates: []state.Update{{Key: key, Op: abi.OpAdd, Value: n}}}}
}

// A commit from outside while hooks run fails nothing and loses nothing, whatever
// it touches.
func TestBackgroundCommit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		key      string
		want     int64
		calls    int
		deferred bool
	}{
		"a key that the hook does not touch": {"p/comm", 1, 1, false},
		"the exclusive key of the hook":      {"p/excl", 11, 2, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var g *rig
			var once atomic.Bool
			p := plug("p", abi.Hook{Phase: abi.BeforeInference, OnFailure: abi.FailRun}, func(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
				if !once.Swap(true) {
					if _, err := g.Submit(ctx, g.state, bump(test.key, 10)); err != nil {
						return nil, err
					}
				}
				return count(ctx, e)
			})
			g = build(t, phases.Config{}, p)
			g.fire(t, step(1))
			g.wantState(t, "p/excl", test.want)
			recs := g.Of("p")
			if len(recs) != test.calls || (recs[0].Deferred != "") != test.deferred {
				t.Errorf("records %+v", recs)
			}
			if test.deferred && !strings.Contains(recs[0].Deferred, `"p/excl" was changed by a commit from outside of the phase`) {
				t.Errorf("deferred because %s", recs[0].Deferred)
			}
		})
	}
}

// Commutative updates of both merge without a second call.
func TestBackgroundCommitCommutes(t *testing.T) {
	t.Parallel()
	var g *rig
	p := plug("p", abi.Hook{Phase: abi.BeforeInference}, func(ctx context.Context, _ *abi.Event) (*abi.Reply, error) {
		_, err := g.Submit(ctx, g.state, bump("p/comm", 10))
		return &abi.Reply{Updates: []abi.Update{{Key: "comm", Op: abi.OpAdd, Value: 1}}}, err
	})
	g = build(t, phases.Config{}, p)
	g.fire(t, step(1))
	g.wantState(t, "p/comm", int64(11))
	g.only(t, "p")
}

// Another writer commits to the hook's own key each time that it is called. In the end
// they wait, and no update is lost.
func TestBackgroundCommitEveryTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g *rig
		var waited atomic.Int64
		p := plug("p", abi.Hook{Phase: abi.BeforeInference, OnFailure: abi.FailRun}, nil)
		p.Script[abi.BeforeInference] = func(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
			done := make(chan error, 1)
			background := context.WithoutCancel(ctx) // It outlives the hook.
			go func() {
				_, err := g.Submit(background, g.state, bump("p/excl", 100))
				done <- err
			}()
			select {
			case err := <-done:
				if err != nil {
					return nil, err
				}
			case <-time.After(time.Millisecond):
				waited.Add(1)
			}
			return count(ctx, e)
		}
		g = build(t, phases.Config{}, p)
		g.fire(t, step(1))
		synctest.Wait()
		calls := len(p.Events())
		g.wantState(t, "p/excl", int64(100*calls+1))
		if waited.Load() != 1 || calls < 3 || calls > 5 {
			t.Errorf("%d calls, %d commits had to wait", calls, waited.Load())
		}
	})
}

// The same for an action, which counts its attempts.
func TestBackgroundCommitDuringAction(t *testing.T) {
	t.Parallel()
	var g *rig
	var once atomic.Bool
	p := worker("p", handle(abi.BeforeInference), schedule(do("act", nil)), answers{"act": func(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
		if !once.Swap(true) {
			if _, err := g.Submit(ctx, g.state, bump("p/excl", 10)); err != nil {
				return nil, err
			}
		}
		reply, err := count(ctx, e)
		return reply, err
	}}, nil)
	g = build(t, phases.Config{}, p)
	out := g.fire(t, step(1))
	wantReport(t, out.Report, phases.Report{Rounds: 1, Processed: 1})
	g.wantState(t, "p/excl", int64(11))
	if len(out.Emitted) != 1 {
		t.Errorf("emitted %+v: what a superseded reply asked for counts too", out.Emitted)
	}
	recs := g.Records()
	if len(recs) != 3 || recs[1].Attempt != 1 || len(recs[1].Applied) != 0 || len(recs[1].Refused) != 1 || recs[2].Attempt != 2 {
		t.Errorf("records %+v", recs)
	}
}

// A submit does not wait for the hooks of a phase.
func TestSubmitDoesNotWait(t *testing.T) {
	t.Parallel()
	var g *rig
	submitted := make(chan struct{})
	p := plug("p", abi.Hook{Phase: abi.BeforeInference}, func(ctx context.Context, _ *abi.Event) (*abi.Reply, error) {
		select {
		case <-submitted:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	g = build(t, phases.Config{}, p)
	go func() {
		defer close(submitted)
		if _, err := g.Submit(t.Context(), g.state, bump("p/comm", 1)); err != nil {
			t.Error(err)
		}
	}()
	g.fire(t, step(1))
	if rec := g.only(t, "p"); rec.Err != "" {
		t.Errorf("the hook waited for a submit that waited for it: %s", rec.Err)
	}
}

// While a phase waits for its turn to commit, its context may end.
func TestCancelledWhileTheStoreIsHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := build(t, phases.Config{}, plug("p", abi.Hook{Phase: abi.BeforeInference}, count))
		_, release, err := g.state.Store().Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out, err := g.Fire(ctx, g.state, step(1))
		if !errors.Is(err, context.DeadlineExceeded) || len(out.Emitted) != 0 || g.state.Revision() != 0 {
			t.Errorf("%+v, %v", out, err)
		}
		release()
		g.fire(t, step(1))
		g.wantState(t, "p/excl", int64(1))
	})
}

// Watchers are notified of each phase once, with everything that it committed.
func TestWatchPhases(t *testing.T) {
	t.Parallel()
	g := build(t, phases.Config{}, plug("a", abi.Hook{Phase: abi.BeforeInference}, count), plug("b", abi.Hook{Phase: abi.BeforeInference}, count))
	var heard []state.Change
	if _, err := g.state.Store().Watch(func(c state.Change) { heard = append(heard, c) }); err != nil {
		t.Fatal(err)
	}
	g.fire(t, step(1))
	g.fire(t, phasestest.Frame(abi.RunEnd))
	if len(heard) != 1 || heard[0].Updates != 2 || strings.Join(heard[0].Keys, " ") != "a/excl b/excl" {
		t.Errorf("received %+v", heard)
	}
}
