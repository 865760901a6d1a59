package mailboxtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// crashCheck compares what was acknowledged with what is there.
type crashCheck struct {
	t    *testing.T
	said *saidLog
	box  *mailbox.Mailbox
	// found and repeated are for the report.
	found, repeated int
}

// drain lets a last process finish what is left, and checks.
func (c *crashCheck) drain(open OpenFunc, name string) {
	c.t.Helper()
	ctx := c.t.Context()
	store, closeStore, err := open(ctx, name)
	must(c.t, err)
	defer func() {
		if err := closeStore(context.WithoutCancel(ctx)); err != nil {
			c.t.Errorf("close: %v", err)
		}
	}()
	cfg := crashConfig(store, func(words ...any) { c.said.note(strings.TrimSpace(fmt.Sprintln(words...))) })
	cfg.Lease.Duration = crashStill // no process kills it: it loses no claim because the machine is busy
	c.box, err = mailbox.New(ctx, cfg)
	must(c.t, err)
	c.oneClaim(ctx)
	must(c.t, c.box.Start(ctx))
	c.finish(ctx)
	must(c.t, c.box.Close(ctx))
	c.threads(ctx)
	c.dispatches(ctx)
}

// finish waits until nothing is left, for as long as something ends now and then.
func (c *crashCheck) finish(ctx context.Context) {
	c.t.Helper()
	ended, since := -1, time.Now()
	for !c.idle(ctx) {
		counts, err := c.box.Count(ctx)
		must(c.t, err)
		if n := counts[mailbox.Acked]; n != ended {
			ended, since = n, time.Now()
		}
		if time.Since(since) > crashStill {
			c.t.Fatalf("some of what was left does not end: %v, for %v", counts, crashStill)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// idle reports whether nothing is left.
func (c *crashCheck) idle(ctx context.Context) bool {
	c.t.Helper()
	list, err := c.box.Dispatches(ctx, mailbox.DispatchQuery{Statuses: []mailbox.Status{mailbox.Queued, mailbox.Claimed}, Limit: 1})
	must(c.t, err)
	return len(list) == 0
}

// oneClaim checks what the dead have left: claims, one for each thread, which the records know.
func (c *crashCheck) oneClaim(ctx context.Context) {
	c.t.Helper()
	list, err := c.box.Dispatches(ctx, mailbox.DispatchQuery{Statuses: []mailbox.Status{mailbox.Claimed}, Limit: 1000})
	must(c.t, err)
	seen := map[string]bool{}
	for i := range list {
		d := &list[i]
		h, err := c.box.Thread(ctx, d.Thread)
		must(c.t, err)
		if seen[d.Thread] || h.Claim == nil || h.Claim.Dispatch != d.ID || h.Claim.Token != d.Token {
			c.t.Errorf("thread %q: dispatch %q is claimed; the thread record has the claim %+v", d.Thread, d.ID, h.Claim)
		}
		seen[d.Thread] = true
	}
}

// dispatches checks that all that was acknowledged is there, and that all ended well.
func (c *crashCheck) dispatches(ctx context.Context) {
	c.t.Helper()
	there := map[string]bool{}
	q := mailbox.DispatchQuery{Limit: 1000}
	for {
		list, err := c.box.Dispatches(ctx, q)
		must(c.t, err)
		if len(list) == 0 {
			break
		}
		for i := range list {
			d := &list[i]
			there[d.ID] = true
			run, _, err := c.box.Run(ctx, d.RunID)
			must(c.t, err)
			if d.Status != mailbox.Acked || run.Status != mailbox.RunDone || run.Termination != "natural" {
				c.t.Errorf("dispatch %q is %s (%s), its run %q is %s, %s", d.ID, d.Status, d.LastError, d.RunID, run.Status, run.Termination)
			}
		}
		q.After = list[len(list)-1]
	}
	c.found = len(there)
	for _, id := range c.said.submitted {
		if !there[id] {
			c.t.Errorf("dispatch %q was acknowledged and is lost", id)
		}
	}
	if c.found == 0 {
		c.t.Error("nothing was submitted")
	}
}

// threads checks the records and logs.
func (c *crashCheck) threads(ctx context.Context) {
	c.t.Helper()
	records, err := c.box.Threads(ctx, mailbox.ThreadQuery{Limit: 1000})
	must(c.t, err)
	for i := range records {
		h := &records[i]
		if h.Claim != nil || h.Queued != 0 || h.Open.ID != "" || !h.DueAt.IsZero() {
			c.t.Errorf("thread %q has not come to rest: %+v", h.ID, h)
		}
		log, err := c.box.Messages(ctx, h.ID, 1, 1_000_000)
		must(c.t, err)
		equal(c.t, "length of the log of "+h.ID, len(log), h.Messages)
		c.log(h.ID, log)
	}
}

// log checks that no process wrote after the next claim, or half of a step, and that what was
// finished was not begun again.
func (c *crashCheck) log(thread string, log []mailbox.Message) {
	c.t.Helper()
	last, steps := 0, 0
	finished := map[string]bool{}
	var dispatches []string
	for i := range log {
		var id string
		var fence, step int
		if _, err := fmt.Sscanf(log[i].ID, "%s %d %d", &id, &fence, &step); err != nil {
			c.t.Fatalf("message %q: %v", log[i].ID, err)
		}
		if fence > last {
			steps = 0
			if slices.Contains(dispatches, id) {
				c.repeated++
			}
			dispatches = append(dispatches, id)
		}
		if fence < last || step != steps || finished[id] || log[i].Seq != i+1 {
			c.t.Errorf("thread %q: message %d is %q, after claim %d and %d steps; finished: %v", thread, log[i].Seq, log[i].ID, last, steps, finished[id])
		}
		last, steps = fence, steps+1
		finished[id] = step == crashSteps-1
	}
	for _, id := range dispatches {
		if !finished[id] {
			c.t.Errorf("thread %q: dispatch %q was never finished", thread, id)
		}
	}
}
