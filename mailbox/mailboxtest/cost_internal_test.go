package mailboxtest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// TestCost holds what a job costs besides polls: two batches if its thread is claimed as it is queued, else three, and nothing is read of a
// thread that this process has used, or takes for new. Another process has one batch refused, or reads what it does not know.
func TestCost(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	w := newWorld(t, &Faulty{Store: memstore.New(), Plan: func(_ context.Context, operation string) Fault {
		if operation == "apply" || operation == "read" {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, operation)
		}
		return FaultNone
	}})
	process := func(c *mailbox.Config) { c.NewID, c.Events.Pause, c.Poll = nil, -1, time.Hour }
	here, there, eager := w.manual(process), w.manual(process), w.manual(process)
	for i, job := range []struct {
		by, claims *manual
		want       string
	}{
		{here, here, "apply apply apply"},
		{here, here, "apply apply apply"},
		{there, there, "apply read apply apply apply"},
		{there, here, "apply read read apply apply"},
		{eager, nil, "apply read apply apply"},
		{eager, nil, "apply apply"},
	} {
		if job.claims == nil {
			must(t, job.by.Start(w.ctx()))
		}
		mu.Lock()
		asked = nil
		mu.Unlock()
		_, err := job.by.SubmitBackground(w.ctx(), mailbox.Request{Thread: "t", Messages: []mailbox.Input{{Data: []byte("x")}}})
		must(t, err)
		by := job.by
		var x *hand
		if job.claims != nil {
			by = job.claims
			x = by.poll()[0]
		} else {
			x = <-by.hands.begun
		}
		x.end <- outcome{}
		settled(by.Mailbox, x.Dispatch.Token)
		mu.Lock()
		if got := strings.Join(asked, " "); got != job.want {
			t.Errorf("job %d took %q, want %q", i, got, job.want)
		}
		mu.Unlock()
	}
}
