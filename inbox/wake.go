package inbox

import (
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
			o.wg.Go(func() {
				o.every(o.cfg.MaxRetry, "list notifications of other processes", o.load)
			})
		}
	})
}

// every calls do, again and again, until the Inbox closes.
func (o *Inbox) every(pause time.Duration, what string, do func(ctx context.Context) error) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-o.stop.Done():
			return
		case <-ticker.C:
		}
		if err := do(o.stop); err != nil && o.stop.Err() == nil {
			o.cfg.Logger.Warn("periodic work failed, trying again", "what", what, "owner", o.owner, "error", err)
		}
	}
}

// ring has the waker see what is due.
func (o *Inbox) ring() {
	select {
	case o.alarm <- struct{}{}:
	default:
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
	next := now.Add(o.cfg.MaxRetry)
	o.mu.Lock()
	defer o.mu.Unlock()
	for thread, q := range o.queues {
		if q.due.IsZero() || q.running || o.closed {
			continue
		}
		if unread, end := q.status(now); !now.Before(q.due) && unread {
			q.unread, q.running, q.taken = true, true, false
			o.wg.Go(func() { o.wakeThread(thread, q) })
			continue
		} else if !now.Before(q.due) {
			q.due = end
		}
		if !q.due.IsZero() && q.due.Before(next) {
			next = q.due
		}
	}
	return max(next.Sub(now), time.Millisecond)
}

// errNotTaken ends a wake after which no notification was taken.
var errNotTaken = errors.New("the wake took no notification")

// wakeThread wakes one thread, and schedules the next wake if notifications are unread afterwards.
func (o *Inbox) wakeThread(thread string, q *queue) {
	ctx, cancel := context.WithCancelCause(o.stop)
	timeout := time.AfterFunc(o.cfg.MaxRetry, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if !q.taken {
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
	q.running = false
	if err != nil || !q.taken { // none was taken, or all were released
		q.unread, q.due = true, o.cfg.Now().Add(q.back)
		q.back = min(2*q.back, o.cfg.MaxRetry)
	}
	o.settle(thread, q)
}

// callWake calls the wake function, unless the thread was deleted or another process acknowledged all there was.
func (o *Inbox) callWake(ctx context.Context, thread string, q *queue) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("wake panicked: %.256v", p)
		}
	}()
	if err := o.scan(ctx, thread, false, all); err != nil {
		return err
	}
	o.mu.Lock()
	unread, _ := q.status(o.cfg.Now())
	o.mu.Unlock()
	if !unread {
		return nil
	}
	return o.wake(ctx, thread)
}
