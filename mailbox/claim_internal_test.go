package mailbox

import (
	"testing"
	"time"

	"github.com/mortise-dev/mortise/store/memstore"
)

// TestClaim_paused: a process that read that a thread is due, before an operator paused it, does not claim it.
func TestClaim_paused(t *testing.T) {
	t.Parallel()
	box, _ := alone(t)
	if _, err := box.Enqueue(t.Context(), entry{ID: "d", Request: Request{Thread: "t", NewRun: "r"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := box.PauseThread(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	claim := claimRequest{Token: "token", Owner: "one", Lease: time.Minute}
	if s, ok, err := box.Claim(t.Context(), "t", claim); ok || err != nil {
		t.Errorf("a paused thread is claimed: %+v, %v", s.Dispatch, err)
	}
	if _, err := box.ResumeThread(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := box.Claim(t.Context(), "t", claim); !ok || err != nil {
		t.Errorf("a resumed thread is not claimed: %v", err)
	}
}

// TestSettle_late: work that was done when its lease ran out is done, as long as no process has begun it again. A failure that late is refused.
func TestSettle_late(t *testing.T) {
	t.Parallel()
	for verdict, status := range map[verdict]Status{verdictAck: Acked, verdictRetry: Queued} {
		t.Run(string(verdict), func(t *testing.T) {
			t.Parallel()
			box, clock := alone(t)
			s, err := box.Enqueue(t.Context(), entry{ID: "d", Request: Request{Thread: "t", NewRun: "r", MaxAttempts: 3}, Claim: &claimRequest{Token: "token", Owner: "one", Lease: time.Minute}})
			if err != nil {
				t.Fatal(err)
			}
			*clock = clock.Add(time.Hour)
			if _, ok, err := box.Expire(t.Context(), "t"); err != nil || !ok {
				t.Fatal(ok, err)
			}
			_, err = box.Settle(t.Context(), s.Hold(), settlement{Verdict: verdict})
			if (err == nil) != (verdict == verdictAck) {
				t.Errorf("the late settlement: %v", err)
			}
			if d, _, err := box.Dispatch(t.Context(), "d"); err != nil || d.Status != status {
				t.Errorf("the dispatch is %s, want %s: %v", d.Status, status, err)
			}
		})
	}
}

// alone is a mailbox with a store and a clock of its own.
func alone(t *testing.T) (*Mailbox, *time.Time) {
	t.Helper()
	now := time.Unix(1_800_000_000, 0)
	box, err := New(t.Context(), Config{Store: memstore.New(), Lease: Lease{Skew: -1}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return box, &now
}
