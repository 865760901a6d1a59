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
		for thread, q := range o.queues {
			o.arm(thread, q)
		}
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

// arm has a queue woken when it is due, and looked at every MaxRetry until then: Config.Now may be set. The caller holds the lock.
func (o *Inbox) arm(thread string, q *queue) {
	if q.timer != nil {
		q.timer.Stop()
	}
	if o.wake != nil && !q.due.IsZero() && !q.running && !o.closed {
		pause := min(max(q.due.Sub(o.cfg.Now()), time.Millisecond), o.cfg.MaxRetry)
		q.timer = time.AfterFunc(pause, func() { o.ring(o.stop, thread, q) })
	}
}

// ring begins the wake of a queue that is due, unless nothing is unread any more.
func (o *Inbox) ring(ctx context.Context, thread string, q *queue) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.cfg.Now()
	unread, end := q.status(now)
	switch {
	case q.running, o.closed, q.due.IsZero():
		return
	case now.Before(q.due): // it was put off meanwhile
	case unread:
		q.unread, q.running, q.taken = true, true, false
		o.wg.Go(func() { o.wakeThread(ctx, thread, q) })
		return
	default:
		q.due = end
	}
	o.arm(thread, q)
}

// errNotTaken ends a wake after which no notification was taken.
var errNotTaken = errors.New("the wake took no notification")

// wakeThread wakes one thread, and schedules the next wake if notifications are unread afterwards.
func (o *Inbox) wakeThread(ctx context.Context, thread string, q *queue) {
	ctx, cancel := context.WithCancelCause(ctx)
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
		o.cfg.Logger.WarnContext(ctx, "a thread could not be woken, trying again", "thread_id", thread, "error", err)
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
