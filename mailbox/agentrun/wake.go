package agentrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// Waker returns what wakes a thread of a mailbox that has notifications to read, as when a background
// task has ended: it is for Inbox.Start of package inbox. It queues the request by which the
// thread's waiting run continues ([Wake]), or without one a request that begins a run. It queues
// nothing while the thread has a run under way or a request that is due, since these read the
// notifications too; the caller repeats it until they are read.
func Waker(box *mailbox.Mailbox) func(ctx context.Context, thread string) error {
	return func(ctx context.Context, thread string) error {
		t, err := box.Thread(ctx, thread)
		if err != nil {
			return err
		}
		if t.Seq == 0 {
			return fmt.Errorf("agentrun: wake thread %.80q: the mailbox has no such thread; submit its first request before its tasks end", thread)
		}
		r, due := wakeOf(t)
		if !due {
			return nil
		}
		_, err = box.SubmitBackground(ctx, r)
		if errors.Is(err, mailbox.ErrExists) {
			return nil // another process was first
		}
		return err
	}
}

// wakeOf is the request that wakes a thread, if it needs one.
func wakeOf(t mailbox.Thread) (r mailbox.Request, due bool) {
	run := mailbox.Run{Thread: t.ID}
	switch {
	case t.Claim != nil, t.Queued > 0 && !t.DueAt.After(time.Now()):
		return mailbox.Request{}, false
	case t.Open.Status == mailbox.RunRunning, t.Open.Postponed(): // it is tried again
		return mailbox.Request{}, false
	case t.Open.Status == mailbox.RunWaiting:
		run.ID = t.Open.ID
	}
	r, due = Wake(run)
	r.Tenant, r.Dedupe = t.Tenant, "agentrun wake"
	return r, due
}
