package natsstore

import (
	"context"
	"sync"
)

// turns lets one goroutine of the process at a time write to a thread: others would be refused by the servers.
type turns struct {
	mu sync.Mutex
	of map[string]*turn
}

type turn struct {
	taken chan struct{}
	users int
}

// enter waits for the turn of a thread. The caller calls leave, once.
func (t *turns) enter(ctx context.Context, thread string) (leave func(), err error) {
	t.mu.Lock()
	x := t.of[thread]
	if x == nil {
		x = &turn{taken: make(chan struct{}, 1)}
		t.of[thread] = x
	}
	x.users++
	t.mu.Unlock()
	select {
	case x.taken <- struct{}{}:
		return func() {
			<-x.taken
			t.left(thread, x)
		}, nil
	case <-ctx.Done():
		t.left(thread, x)
		return nil, context.Cause(ctx)
	}
}

func (t *turns) left(thread string, x *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x.users--
	if x.users == 0 {
		delete(t.of, thread)
	}
}
