package queue

import (
	"context"
	"fmt"
	"sync"
)

// lines are the listeners of this process.
type lines struct {
	mu   sync.Mutex
	open map[Target]*line
}

// line is one listener.
type line struct {
	accept func(context.Context, Command) bool
	// turn has an entry while no command is being accepted; gone is closed when the listener is.
	turn chan struct{}
	gone chan struct{}
}

// Listen calls accept for each command to exactly the target until stop is called, one at a time. A second listener replaces the first.
// When stop returns, accept runs no more. Listeners of one target in two processes are not kept apart: a target is the execution of a claim.
func (q *Queue) Listen(ctx context.Context, t Target, accept func(context.Context, Command) bool) (stop func(), err error) {
	l := &line{accept: accept, turn: make(chan struct{}, 1), gone: make(chan struct{})}
	l.turn <- struct{}{}
	listening, cancel := context.WithCancel(context.WithoutCancel(ctx))
	commands, err := q.store.Watch(listening, address(t))
	if err != nil {
		cancel()
		return nil, fmt.Errorf("mailbox: listen for thread %.80q: %w", t.Thread, err)
	}
	q.lines.mu.Lock()
	q.lines.open[t] = l
	q.lines.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range commands {
			q.receive(listening, t, l)
		}
	}()
	return sync.OnceFunc(func() {
		q.lines.mu.Lock()
		if q.lines.open[t] == l {
			delete(q.lines.open, t)
		}
		q.lines.mu.Unlock()
		close(l.gone)
		<-l.turn
		cancel()
		<-done
	}), nil
}
