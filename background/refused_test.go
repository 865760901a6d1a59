package background_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
)

var errIdle = errors.New("the thread has no run")

// kinds are the notices in order, events by their type.
func kinds(list []abi.Notice) (out []string) {
	for _, n := range list {
		if n.Kind == abi.NoticeCustom {
			out = append(out, n.EventType)
		} else {
			out = append(out, string(n.Kind))
		}
	}
	return out
}

// TestRefusedHousekeeping: what the owner of a thread refuses is committed to the ledger, in
// order, once, and however often the ledger fails.
func TestRefusedHousekeeping(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		// refuse is the owner's answer to notice n, from 0.
		refuse                  func(n int) error
		failures                int
		wantOwner, wantLedger   []string
		wantRefused, wantFailed int
	}{
		"all":             {refuse: func(int) error { return errIdle }, wantLedger: []string{"one", "two", "completed"}},
		"none":            {refuse: func(int) error { return nil }, wantOwner: []string{"one", "two", "completed"}},
		"from the second": {refuse: func(n int) error { return refuseWhen(n > 0) }, wantOwner: []string{"one"}, wantLedger: []string{"two", "completed"}},
		"only the first":  {refuse: func(n int) error { return refuseWhen(n == 0) }, wantLedger: []string{"one", "two", "completed"}},
		"the end":         {refuse: func(n int) error { return refuseWhen(n > 1) }, wantOwner: []string{"one", "two"}, wantLedger: []string{"completed"}},
		"a failing ledger": {
			refuse: func(n int) error { return refuseWhen(n > 1) }, failures: 3, wantOwner: []string{"one", "two"}, wantLedger: []string{"completed"}, wantFailed: 3,
		},
		"an owner that panics": {
			refuse:    func(n int) error { return panicWhen(n > 1) },
			wantOwner: []string{"one", "two"}, wantLedger: []string{"completed"},
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				owner, b, n := &ledger{}, &book{}, 0
				left := test.failures
				b.fail = func(string, bool) error {
					left--
					if left >= 0 {
						return errors.New("disk")
					}
					return nil
				}
				m := newManager(t, background.Config{Ledger: b, Deliver: func(ctx context.Context, thread string, notice abi.Notice) error {
					n++
					if err := test.refuse(n - 1); err != nil {
						return err
					}
					return owner.deliver(ctx, thread, notice)
				}})
				housekeep(t, m, func(_ context.Context, task *background.Task) (any, error) {
					if !task.Emit("one", 1) || !task.Emit("two", 2) {
						t.Error("an event was not accepted")
					}
					return nil, nil
				})
				wait(t, m, "a")
				if got := kinds(owner.of("a")); !slices.Equal(got, test.wantOwner) {
					t.Errorf("the owner got %q, want %q", got, test.wantOwner)
				}
				if got := kinds(b.of("a")); !slices.Equal(got, test.wantLedger) {
					t.Errorf("the ledger got %q, want %q", got, test.wantLedger)
				}
				s := m.Stats()
				if s.LostNotices != 0 || s.RefusedEvents != test.wantRefused || s.CommitFailures["task_completion"] != test.wantFailed {
					t.Errorf("stats are %+v", s)
				}
				if records, err := b.Records(t.Context(), "a"); err != nil || len(records) != 0 {
					t.Errorf("the ledger has %d records of housekeeping, %v", len(records), err)
				}
				closeManager(t, m)
			})
		})
	}
}

func refuseWhen(yes bool) error {
	if yes {
		return errIdle
	}
	return nil
}

func panicWhen(yes bool) error {
	if yes {
		panic("the owner")
	}
	return nil
}

// TestRefusedAtTheEnd: an owner without room when the Manager closes leaves the end to the ledger.
func TestRefusedAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &book{}
		m := newManager(t, background.Config{Ledger: b, Deliver: func(ctx context.Context, _ string, _ abi.Notice) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		housekeep(t, m, func(context.Context, *background.Task) (any, error) { return nil, nil })
		time.Sleep(time.Second)
		_ = m.Close(t.Context()) // the owner was given up
		if got := kinds(b.of("a")); !slices.Equal(got, []string{"completed"}) || m.Stats().LostNotices != 0 {
			t.Errorf("the ledger got %q, stats are %+v", got, m.Stats())
		}
	})
}
