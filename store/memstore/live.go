package memstore

import (
	"context"
	"sync"

	"github.com/mortise-dev/mortise/mailbox"
)

// lines are the live channels that are open.
type lines struct {
	mu   sync.Mutex
	open map[mailbox.Target]*line
}

// line is one listener.
type line struct {
	accept func(context.Context, mailbox.Command) bool
	// turn has an entry while nobody is served; gone is closed when the listener is.
	turn chan struct{}
	gone chan struct{}
}

// Listen implements mailbox.Live.
func (s *Store) Listen(_ context.Context, t mailbox.Target, accept func(context.Context, mailbox.Command) bool) (stop func(), err error) {
	l := &line{accept: accept, turn: make(chan struct{}, 1), gone: make(chan struct{})}
	l.turn <- struct{}{}
	s.live.mu.Lock()
	s.live.open[t] = l
	s.live.mu.Unlock()
	return sync.OnceFunc(func() {
		s.live.mu.Lock()
		if s.live.open[t] == l {
			delete(s.live.open, t)
		}
		s.live.mu.Unlock()
		close(l.gone)
		<-l.turn
	}), nil
}

// Deliver implements mailbox.Live.
func (s *Store) Deliver(ctx context.Context, t mailbox.Target, c mailbox.Command) (bool, error) {
	s.live.mu.Lock()
	l := s.live.open[t]
	s.live.mu.Unlock()
	if l == nil {
		return false, nil
	}
	select {
	case <-l.gone:
		return false, nil
	case <-l.turn:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	accepted := make(chan bool, 1)
	go func() {
		defer func() { l.turn <- struct{}{} }()
		accepted <- l.accept(context.WithoutCancel(ctx), c)
	}()
	select {
	case ok := <-accepted:
		return ok, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
