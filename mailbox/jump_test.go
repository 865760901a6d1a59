package mailbox_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// TestClockJumps holds that a clock which is set, or a machine that was asleep, costs no execution of this process its thread.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"forth":                    func(t *testing.T) { jumps(t, time.Hour) },
		"back":                     func(t *testing.T) { jumps(t, -time.Hour) },
		"a_deaf_run_is_left_alone": jumpsDeaf,
	})
}

// shifted is a clock that can be set.
type shifted struct{ by atomic.Int64 }

func (s *shifted) now() time.Time { return time.Now().Add(time.Duration(s.by.Load())) }

func jumps(t *testing.T, by time.Duration) {
	t.Helper()
	clock := &shifted{}
	goOn := make(chan struct{})
	s := &script{do: func(ctx context.Context, _ *mailbox.Job) (mailbox.Result, error) {
		select {
		case <-goOn:
			return mailbox.Result{}, nil
		case <-ctx.Done():
			return mailbox.Result{}, context.Cause(ctx)
		}
	}}
	m := started(t, mailbox.Config{Runtime: s, Store: plain{memstore.New()}, Now: clock.now})
	sub := background(t, m, request("t", "x"))
	sleep(time.Second)
	clock.by.Store(int64(by))
	sleep(3 * (30 * time.Second))
	d := wantStatus(t, m, sub.Dispatch, mailbox.Claimed)
	equal(t, "attempts", d.Attempts, 0)
	equal(t, "the lease continues", record(t, m, "t").Claim.Until.After(clock.now()), true)
	close(goOn)
	sleep(time.Second)
	wantStatus(t, m, sub.Dispatch, mailbox.Acked)
	s.wantRan(t, "x")
	next := background(t, m, request("t", "y"))
	sleep(time.Second)
	wantStatus(t, m, next.Dispatch, mailbox.Acked)
}

// jumpsDeaf holds that a run which was asked to end, and does not, loses its thread all the same.
func jumpsDeaf(t *testing.T) {
	clock := &shifted{}
	release := make(chan struct{})
	m := started(t, mailbox.Config{Runtime: deafRun(release), Store: plain{memstore.New()}, Now: clock.now})
	sub := background(t, m, request("t", "x"))
	sleep(time.Second)
	_, err := m.Interrupt(t.Context(), "t")
	must(t, err)
	clock.by.Store(int64(time.Hour))
	sleep(2 * time.Second)
	wantStatus(t, m, sub.Dispatch, mailbox.Superseded)
	close(release)
	sleep(0)
}
