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

// TestCost holds what a job costs: two batches if its thread is claimed as it is queued, else three, and nothing is read of a thread that
// this process has used, or takes for new. Another process reads what it does not know, or has one batch refused.
func TestCost(t *testing.T) {
	t.Parallel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var asked []string
	s := &mailboxtest.Faulty{Store: memstore.New(), Plan: func(_ context.Context, operation string) mailboxtest.Fault {
		asked = append(asked, operation)
		return mailboxtest.FaultNone
	}}
	process := func() *queue.Queue {
		q, err := queue.New(queue.Config{Store: s})
		must(err)
		_, err = q.Time(t.Context())
		must(err)
		return q
	}
	here, there := process(), process()
	third := process()
	for i, job := range []struct {
		by, claims    *queue.Queue
		unread, offer bool
		want          string
	}{
		{by: here, claims: here, unread: true, want: "apply apply apply"},
		{by: here, claims: here, want: "apply apply apply"},
		{by: here, claims: here, offer: true, want: "apply apply"},
		{by: there, claims: there, want: "read apply apply apply"},
		{by: there, claims: here, want: "read apply read read apply apply"}, // the first is of the dedupe key
		{by: third, claims: third, unread: true, offer: true, want: "apply read apply apply"},
	} {
		asked = nil
		id := string(rune('a' + i))
		e := queue.Entry{
			ID: id, OwnID: true, Thread: "t", NewRun: "r" + id, OwnRun: true, Request: []byte("{}"), Dedupe: "k" + id, Unread: job.unread,
		}
		claim := queue.ClaimRequest{Token: id, Lease: time.Minute, Instance: "i" + id}
		if job.offer {
			e.Offer = &claim
		}
		k, err := job.by.Enqueue(t.Context(), e)
		must(err)
		if !job.offer {
			k, _, err = job.claims.Claim(t.Context(), "t", claim)
			must(err)
		}
		_, err = job.claims.Settle(t.Context(), k.Hold(), queue.Settlement{Verdict: queue.Ack, Result: queue.Result{Status: queue.RunDone}})
		must(err)
		if got := strings.Join(asked, " "); got != job.want {
			t.Errorf("job %d took %q, want %q", i, got, job.want)
		}
	}
}
