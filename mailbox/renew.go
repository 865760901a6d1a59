package mailbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// expire ends the execution when its lease is over.
func (x *execution) expire() *time.Timer {
	return time.AfterFunc(x.claimed.Claim.Until.Sub(x.box.now()), func() {
		x.cancel(fmt.Errorf("%w: it was not renewed in time", ErrLeaseLost))
	})
}

// keepLease renews the lease until ctx is done. When the store fails it continues
// trying, faster; when the lease is over all the same, the execution ends, also if the store has not answered yet.
func (x *execution) keepLease(ctx context.Context, over *time.Timer) {
	defer x.renewing.Store(false)
	defer over.Stop()
	until, pause := x.claimed.Claim.Until, x.box.cfg.Lease.Renew
	for {
		if !wait(ctx, pause, x.renew) {
			return
		}
		asked, lease := time.Now(), x.lease()
		claim, err := x.box.extend(ctx, x.hold, lease)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && claim.Stop != "":
			x.cancel(stopped(claim.Stop))
			return
		case err == nil && claim.Paused:
			x.cancel(ErrPaused)
			return
		case err == nil:
			until, pause = claim.Until, x.box.cfg.Lease.Renew
			over.Reset(lease - time.Since(asked))
		case errors.Is(err, ErrConflict) && claim.Token == x.hold.Token:
			x.cancel(stopped("interrupted"))
			return
		case errors.Is(err, ErrConflict), errors.Is(err, ErrNotFound), !x.box.now().Before(until):
			x.cancel(fmt.Errorf("%w: %w", ErrLeaseLost, err))
			return
		default:
			x.box.warn(ctx, "mailbox_lease_not_renewed", err, "thread", x.hold.Thread, "dispatch", x.hold.Dispatch)
			pause = min(max(until.Sub(x.box.now())/4, 10*time.Millisecond), x.box.cfg.Lease.Renew)
		}
	}
}

// renews reports whether the claim of a thread, which seems to be over, is that of an execution of this process which keeps it, and has it
// renewed now: the clock was set, or the machine was asleep.
func (m *Mailbox) renews(h Thread) bool {
	x := m.execution(h.ID)
	if x == nil || x.hold.Token != h.Claim.Token || !x.renewing.Load() {
		return false
	}
	x.renewNow()
	return true
}

func (x *execution) renewNow() {
	select {
	case x.renew <- struct{}{}:
	default:
	}
}

// lease is how long to hold the thread.
func (x *execution) lease() time.Duration {
	if x.suspended.Load() {
		return max(x.box.cfg.Lease.Suspended, x.box.cfg.Lease.Duration)
	}
	return x.box.cfg.Lease.Duration
}
