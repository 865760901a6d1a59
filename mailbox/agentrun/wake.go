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
		head, err := box.Queue().Head(ctx, thread)
		if err != nil {
			return err
		}
		if head.Seq == 0 {
			return fmt.Errorf("agentrun: wake thread %.80q: the mailbox has no such thread; submit its first request before its tasks end", thread)
		}
		r, due := wakeOf(head)
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
func wakeOf(head mailbox.Head) (r mailbox.Request, due bool) {
	run := mailbox.Run{Thread: head.Thread}
	switch {
	case head.Claim != nil, head.Queued > 0 && !head.DueAt.After(time.Now()):
		return mailbox.Request{}, false
	case head.Open.Status == mailbox.RunRunning: // it is tried again
		return mailbox.Request{}, false
	case head.Open.Status == mailbox.RunWaiting:
		run.ID = head.Open.ID
	}
	r, due = Wake(run)
	r.Tenant, r.Dedupe = head.Tenant, "agentrun wake"
	return r, due
}
