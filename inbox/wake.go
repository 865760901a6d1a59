package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Start begins to wake threads that have unread notifications, also those that the store had before.
// Call it when everything is there that a wake needs: the tasks are recovered, the
// agent is made. A second call does nothing, and so does one after Close.
//
// Wake asks for a run of the thread, or notifies its run; agent.Agent.Wake is for it. It
// is called again, with growing pauses, until the notifications are acknowledged: an error
// is only logged. It may run the thread and return when the run is
// over. Its context ends when the Inbox closes, and after MaxRetry if no notification was taken by then.
func (o *Inbox) Start(wake func(ctx context.Context, thread string) error) {
	o.once.Do(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.closed {
			return
		}
		o.wake = wake
		o.wg.Go(o.wakeLoop)
		if o.cfg.Shared {
			o.wg.Go(o.adopt)
		}
	})
}

// adopt enters, again and again, entries for which no process wakes the thread: the one that queued them may have ended.
func (o *Inbox) adopt() {
	ticker := time.NewTicker(o.cfg.MaxRetry)
	defer ticker.Stop()
	for {
		select {
		case <-o.stop.Done():
			return
		case <-ticker.C:
		}
		if err := o.load(o.stop); err != nil && o.stop.Err() == nil {
			o.cfg.Logger.Warn("notifications of other processes cannot be listed, trying again", "error", err)
		}
	}
}

// arrived schedules a wake for unread entries, if none is due for such. The first entry waits for more.
// Later ones are covered by the wake that is due. The caller holds the lock.
func (o *Inbox) arrived(q *queue) {
	if q.unread == 0 || q.wake.unread {
		return
	}
	q.wake.unread, q.wake.back = true, cmp.Or(q.wake.back, o.cfg.Retry)
	o.schedule(q, o.cfg.Now().Add(o.cfg.Debounce))
}

// taken schedules a wake for the end of a lease when no entry is unread. The caller holds the lock.
func (o *Inbox) taken(q *queue) {
	if q.unread > 0 {
		return
	}
	q.wake.due, q.wake.unread = time.Time{}, false
	if end := q.leaseEnd(); !end.IsZero() {
		o.schedule(q, end)
	}
}

// schedule sets when to wake and notifies the waker if that is earlier than what it
// waits for. The caller holds the lock.
func (o *Inbox) schedule(q *queue, due time.Time) {
	q.wake.due = due
	if o.next.IsZero() || due.Before(o.next) {
		o.next = due
		select {
		case o.alarm <- struct{}{}:
		default:
		}
	}
}

// wakeLoop wakes threads when they are due.
func (o *Inbox) wakeLoop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-o.stop.Done():
			return
		case <-o.alarm:
		case <-timer.C:
		}
		timer.Reset(o.wakeDue())
	}
}

// wakeDue wakes what is due and returns how long there is nothing to do.
func (o *Inbox) wakeDue() time.Duration {
	now := o.cfg.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next = time.Time{}
	for thread, q := range o.queues {
		if q.wake.due.IsZero() || q.wake.running || o.closed {
			continue
		}
		if !now.Before(q.wake.due) {
			q.expire(now)
			if q.unread > 0 {
				if !q.wake.unread {
					q.wake.unread, q.wake.back = true, cmp.Or(q.wake.back, o.cfg.Retry)
				}
				q.wake.running, q.wake.taken = true, false
				due := q.wake.due
				o.wg.Go(func() { o.wakeThread(thread, q, due) })
				continue
			}
			q.wake.due = q.leaseEnd()
		}
		if due := q.wake.due; !due.IsZero() && (o.next.IsZero() || due.Before(o.next)) {
			o.next = due
		}
	}
	if o.next.IsZero() {
		return o.cfg.MaxRetry
	}
	return max(o.next.Sub(now), time.Millisecond)
}

// errNotTaken ends a wake after which no notification was taken.
var errNotTaken = errors.New("the wake took no notification")

// wakeThread wakes one thread, and schedules the next wake if notifications are unread afterwards.
func (o *Inbox) wakeThread(thread string, q *queue, due time.Time) {
	ctx, cancel := context.WithCancelCause(o.stop)
	timeout := time.AfterFunc(o.cfg.MaxRetry, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if !q.wake.taken {
			cancel(errNotTaken)
		}
	})
	err := o.callWake(ctx, thread, q)
	timeout.Stop()
	cancel(nil)
	if err != nil && o.stop.Err() == nil {
		o.cfg.Logger.Warn("a thread could not be woken, trying again", "thread_id", thread, "error", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	q.wake.running = false
	switch {
	case q.unread == 0:
		o.taken(q)
		o.tidy(thread)
	case err == nil && !q.wake.due.Equal(due): // those were taken meanwhile, and these are others
		o.schedule(q, q.wake.due)
	default: // none was taken, or all were released
		o.schedule(q, o.cfg.Now().Add(q.wake.back))
		q.wake.back = min(2*q.wake.back, o.cfg.MaxRetry)
	}
}

// callWake calls the wake function, unless the thread was deleted or another process acknowledged all there was.
func (o *Inbox) callWake(ctx context.Context, thread string, q *queue) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("wake panicked: %.256v", p)
		}
	}()
	if err := o.scan(ctx, thread, false, func(*queue, []entry) bool { return true }); err != nil {
		return err
	}
	o.mu.Lock()
	unread := q.unread
	o.mu.Unlock()
	if unread == 0 {
		return nil
	}
	return o.wake(ctx, thread)
}
