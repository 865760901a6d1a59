package serve

import (
	"context"
	"sync"
	"time"
)

// changes wakes streams that wait for their run to continue. The zero value is ready, and safe
// for concurrent use.
type changes struct {
	mu      sync.Mutex
	waiting map[string]*waiters
}

type waiters struct {
	changed chan struct{}
	n       int
}

// tell wakes those that wait for a thread.
func (c *changes) tell(thread string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.waiting[thread]; w != nil {
		close(w.changed)
		delete(c.waiting, thread)
	}
}

// wait waits for a change of a thread, which another process may make without telling: at most d.
func (c *changes) wait(ctx context.Context, thread string, d time.Duration) {
	w := c.enter(thread)
	defer c.leave(thread, w)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.changed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (c *changes) enter(thread string) *waiters {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[string]*waiters{}
	}
	w := c.waiting[thread]
	if w == nil {
		w = &waiters{changed: make(chan struct{})}
		c.waiting[thread] = w
	}
	w.n++
	return w
}

func (c *changes) leave(thread string, w *waiters) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.n--
	if w.n == 0 && c.waiting[thread] == w {
		delete(c.waiting, thread)
	}
}
