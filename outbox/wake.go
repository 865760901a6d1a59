package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Start begins to wake threads that have news, with what the store held from before.
// Call it when everything is there that a wake needs: the tasks are recovered, the
// agent is made. A second call does nothing, and so does one after Close.
//
// Wake asks for a run of the thread, or tells its run; agent.Agent.Wake is for it. It
// is called again, less and less often, until somebody takes the news and has it
// kept: an error only is logged. It may run the thread and return when the run is
// over. Its context ends when the Outbox closes, and after MaxRetry if nobody has
// taken news by then.
func (o *Outbox) Start(wake func(ctx context.Context, thread string) error) {
	o.once.Do(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.closed {
			return
		}
		o.wake = wake
		o.wg.Go(o.wakeLoop)
	})
}

// arrived notes news and when to wake for it. The first news waits for more. Later
// news is covered by the wake that is due, or by whoever answers the last one: it
// brings no wake of its own. The caller holds the lock.
func (o *Outbox) arrived(q *queue) {
	if q.news == 0 || q.wake.forNews {
		return
	}
	q.wake.forNews, q.wake.back = true, cmp.Or(q.wake.back, o.cfg.Retry)
	o.schedule(q, o.cfg.Now().Add(o.cfg.Debounce))
}

// taken notes that news were taken: if all were, what is left to wake for is a
// lease that ends. The caller holds the lock.
func (o *Outbox) taken(q *queue) {
	if q.news > 0 {
		return
	}
	q.wake.due, q.wake.forNews = time.Time{}, false
	if end := q.leaseEnd(); !end.IsZero() {
		o.schedule(q, end)
	}
}

// schedule sets when to wake and tells the waker if that is earlier than what it
// waits for. The caller holds the lock.
func (o *Outbox) schedule(q *queue, due time.Time) {
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
func (o *Outbox) wakeLoop() {
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
func (o *Outbox) wakeDue() time.Duration {
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
			if q.news > 0 {
				if !q.wake.forNews {
					q.wake.forNews, q.wake.back = true, cmp.Or(q.wake.back, o.cfg.Retry)
				}
				q.wake.running, q.wake.heard = true, false
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

// errDeaf ends a wake after which nobody takes the news.
var errDeaf = errors.New("the wake took no news")

// wakeThread wakes one thread, and sees to it that it is woken again unless
// somebody takes the news.
func (o *Outbox) wakeThread(thread string, q *queue, due time.Time) {
	ctx, cancel := context.WithCancelCause(o.stop)
	deaf := time.AfterFunc(o.cfg.MaxRetry, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if !q.wake.heard {
			cancel(errDeaf)
		}
	})
	err := o.callWake(ctx, thread)
	deaf.Stop()
	cancel(nil)
	if err != nil && o.stop.Err() == nil {
		o.cfg.Logger.Warn("a thread could not be woken, trying again", "thread_id", thread, "error", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	q.wake.running = false
	switch {
	case q.news == 0:
		o.taken(q)
		o.tidy(thread)
	case err == nil && !q.wake.due.Equal(due): // it was taken meanwhile, and this is other news
		o.schedule(q, q.wake.due)
	default: // nobody took it, or whoever did gave it back
		o.schedule(q, o.cfg.Now().Add(q.wake.back))
		q.wake.back = min(2*q.wake.back, o.cfg.MaxRetry)
	}
}

// callWake calls what may be somebody else's code.
func (o *Outbox) callWake(ctx context.Context, thread string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("wake panicked: %.256v", p)
		}
	}()
	return o.wake(ctx, thread)
}
