package background_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
)

// TestOneCommit shows that neither half of an end is ever seen alone. The ledger
// takes its time before and after it hands the notice on, so that a reader
// in between would see one half.
func TestOneCommit(t *testing.T) {
	t.Parallel()
	pause := func() { <-time.After(5 * time.Millisecond) }
	setUp := func(t *testing.T) (*background.Manager, *inbox.Box, string) {
		t.Helper()
		box := inbox.NewBox(0, nil)
		m := newManager(t, background.Config{Ledger: &ledger{give: func(ctx context.Context, _ string, n abi.Notice) error {
			pause()
			defer pause()
			return box.Send(ctx, n)
		}}})
		return m, box, spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return "built", nil })
	}
	t.Run("no_notice_without_the_status", func(t *testing.T) {
		t.Parallel()
		for name, ended := range map[string]func(*background.Manager, string) bool{
			"HasBlocking": func(m *background.Manager, _ string) bool { return !m.HasBlocking("a") },
			"Get":         func(m *background.Manager, id string) bool { info, _ := m.Get(id); return info.Status.Terminal() },
			"List":        func(m *background.Manager, _ string) bool { return m.List("a")[0].Status.Terminal() },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					m, box, id := setUp(t)
					if n, err := box.Recv(t.Context()); err != nil || n.TaskID != id || n.Kind != abi.NoticeCompleted || n.Result != "built" || n.Error != "" {
						t.Fatalf("received %+v %v", n, err)
					}
					if !ended(m, id) {
						t.Error("the notice was there before the status")
					}
					closeManager(t, m)
				})
			})
		}
	})
	t.Run("no_status_without_the_notice", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m, box, _ := setUp(t)
			for m.HasBlocking("a") {
				<-time.After(time.Millisecond)
			}
			if box.Len() != 1 {
				t.Error("the status was there before the notice")
			}
			closeManager(t, m)
		})
	})
	t.Run("wait_returns_after_the_notice", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m, box, _ := setUp(t)
			wait(t, m, "a")
			if box.Len() != 1 {
				t.Error("Wait returned before the notice was there")
			}
			closeManager(t, m)
		})
	})
}

// TestFullInboxDoesNotDeadlock ends more tasks than the owner has room for while
// the owner asks for their status before it reads.
func TestFullInboxDoesNotDeadlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		box := inbox.NewBox(1, nil)
		m := newManager(t, background.Config{Ledger: into(box)})
		for range 8 {
			spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
		}
		seen := map[string]int{}
		for m.HasBlocking("a") || box.Len() > 0 {
			for _, n := range box.Drain() {
				seen[n.TaskID]++
			}
			tick := time.NewTimer(time.Millisecond)
			<-tick.C
		}
		if len(seen) != 8 {
			t.Fatalf("%d of 8 tasks were reported", len(seen))
		}
		closeManager(t, m)
	})
}

// TestCloseGivesUpOnAFullInbox shows that Close ends although no consumer reads.
func TestCloseGivesUpOnAFullInbox(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		box := inbox.NewBox(1, nil)
		m := newManager(t, background.Config{Ledger: into(box), Limits: background.Limits{Grace: time.Second}})
		for range 3 {
			spawn(t, m, "a", untilCancelled)
		}
		closeManager(t, m)
		closeManager(t, m)
		for _, info := range m.List("a") {
			if info.Status != background.Cancelled {
				t.Fatalf("task is %+v", info)
			}
		}
	})
}

func TestCloseStopsWaitingWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		m := newManager(t, background.Config{Ledger: l, Limits: background.Limits{Grace: time.Hour}})
		release := make(chan struct{})
		spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { <-release; return nil, nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("close: %v", err)
		}
		close(release)
		closeManager(t, m)
	})
}
