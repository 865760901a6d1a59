package phases_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// prompt is a plugin that does one thing.
type prompt struct {
	*noop

	do func(ctx context.Context) error
}

func (p *prompt) OnPhase(ctx context.Context, _ *abi.Event) (*abi.Reply, error) {
	return nil, p.do(ctx)
}

func prompting(name string, do func(ctx context.Context) error) *prompt {
	return &prompt{&noop{abi.Description{Name: name, Hooks: []abi.Hook{{Phase: abi.BeforeInference, Mode: abi.ModeObserve, OnFailure: abi.FailRun}}}}, do}
}

// The context of a hook ends as one with a deadline does, for those who wait and for
// those who look, and has what the run's context has.
func TestContextOfAHook(t *testing.T) {
	t.Parallel()
	type key struct{}
	late := func(ctx context.Context) error {
		if ctx.Err() != nil {
			return errors.New("it begins as over")
		}
		time.Sleep(2 * time.Second)
		return ctx.Err()
	}
	waits := func(ctx context.Context) error {
		<-ctx.Done()
		return errors.Join(ctx.Err(), context.Cause(ctx))
	}
	derived := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	for name, do := range map[string]func(ctx context.Context) error{"looks": late, "waits": waits, "derives": derived} {
		for _, cancelled := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "run"))
				defer cancel()
				var kept context.Context
				g := build(t, phases.Config{HookTimeout: time.Second, Grace: 2 * time.Second}, prompting("p", func(ctx context.Context) error {
					kept = ctx //nolint:fatcontext // to see it end
					until, ok := ctx.Deadline()
					if !ok || time.Until(until) != time.Second || ctx.Value(key{}) != "run" || len(phases.Conversation(ctx)) != 1 {
						t.Errorf("%s: deadline %v, value %v, conversation %v", name, until, ctx.Value(key{}), phases.Conversation(ctx))
					}
					return do(ctx)
				}))
				want := context.DeadlineExceeded
				if cancelled {
					want = context.Canceled
					time.AfterFunc(time.Second/2, cancel)
				}
				if _, err := g.Fire(ctx, g.state, step(1)); !errors.Is(err, want) {
					t.Errorf("%s, cancelled %v: %v", name, cancelled, err)
				}
				if !errors.Is(kept.Err(), want) {
					t.Errorf("%s, cancelled %v: afterwards %v", name, cancelled, kept.Err())
				}
				<-kept.Done()
			})
		}
	}
}

// A context that a hook keeps is over when the phase is.
func TestContextIsOverAfterThePhase(t *testing.T) {
	t.Parallel()
	for _, wait := range []bool{false, true} {
		var kept context.Context
		g := build(t, phases.Config{}, prompting("p", func(ctx context.Context) error {
			if wait {
				_ = ctx.Done()
			}
			kept = ctx //nolint:fatcontext // to see it end
			return nil
		}))
		g.fire(t, step(1))
		<-kept.Done()
		if !errors.Is(kept.Err(), context.Canceled) {
			t.Errorf("error %v", kept.Err())
		}
	}
}

// Hooks are called alongside each other, and each fails for itself; one that does not come back is abandoned.
func TestHooksAmongOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		meet := make(chan struct{})
		deaf := plug("deaf", abi.Hook{Phase: abi.BeforeInference}, func(context.Context, *abi.Event) (*abi.Reply, error) { <-hold; return nil, nil })
		one := prompting("one", func(ctx context.Context) error {
			select {
			case <-meet: // The other one is called at the same time.
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		other := prompting("other", func(context.Context) error { close(meet); panic("bad day") })
		g := build(t, phases.Config{HookTimeout: time.Second, Grace: time.Second}, deaf, one, other)
		begin := time.Now()
		_, err := g.Fire(t.Context(), g.state, step(1))
		if !errors.Is(err, phases.ErrPanic) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("the phase took %v", took)
		}
		if rec := g.only(t, "deaf"); rec.Err == "" || g.only(t, "one").Err != "" || g.Stats()["deaf"].Running != 1 {
			t.Errorf("records %+v", g.Records())
		}
		close(hold)
		synctest.Wait()
	})
}
