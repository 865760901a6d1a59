package mailboxtest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/memstore"
)

// TestCost holds that a job takes one read and three batches of a process that does all of it, in a new thread and in one that it knows, and
// two more reads of one that finds it queued.
func TestCost(t *testing.T) {
	t.Parallel()
	var asked []string
	q, err := queue.New(queue.Config{Store: &mailboxtest.Faulty{Store: memstore.New(), Plan: func(_ context.Context, operation string) mailboxtest.Fault {
		asked = append(asked, operation)
		return mailboxtest.FaultNone
	}}})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	_, err = q.Time(t.Context())
	must(err)
	for i, want := range []string{"read apply apply apply", "read apply apply apply", "read apply read read apply apply"} {
		asked = nil
		id := string(rune('a' + i))
		queued, err := q.Enqueue(t.Context(), queue.Entry{ID: id, OwnID: true, Thread: "t", NewRun: "r" + id, OwnRun: true, Request: []byte("{}"), Dedupe: "k"})
		must(err)
		if i == 2 {
			queued = queue.State{}
		}
		s, ok, err := q.Claim(t.Context(), "t", queue.ClaimRequest{Token: id, Lease: time.Minute, Instance: "i" + id, After: queued})
		must(err)
		if !ok {
			t.Fatal("nothing to claim")
		}
		_, err = q.Settle(t.Context(), s.Hold(), queue.Settlement{Verdict: queue.Ack, Result: queue.Result{Status: queue.RunDone}})
		must(err)
		if got := strings.Join(asked, " "); got != want {
			t.Errorf("job %d took %q, want %q", i, got, want)
		}
	}
}
