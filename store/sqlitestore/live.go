package sqlitestore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// How often a process that listens looks for commands of others, and one that waits for an answer looks for
// that; after which time nobody listens; and how old a command is when whoever sent it has gone.
const (
	livePoll   = 20 * time.Millisecond
	liveNobody = 500 * time.Millisecond
	liveOld    = time.Minute
)

var _ mailbox.Live = (*Store)(nil)

// lines are the live channels that are open in this process.
type lines struct {
	mu   sync.Mutex
	open map[mailbox.Target]*line
	// stop ends the poller, which runs while a line is open; work are it and what it serves.
	stop context.CancelFunc
	work sync.WaitGroup
}

// line is one listener.
type line struct {
	accept func(context.Context, mailbox.Command) bool
	// turn has an entry while nobody is served; gone is closed when the listener is.
	turn chan struct{}
	gone chan struct{}
}

// Listen implements mailbox.Live.
func (s *Store) Listen(ctx context.Context, t mailbox.Target, accept func(context.Context, mailbox.Command) bool) (stop func(), err error) {
	l := &line{accept: accept, turn: make(chan struct{}, 1), gone: make(chan struct{})}
	l.turn <- struct{}{}
	s.live.mu.Lock()
	s.live.open[t] = l
	if s.live.stop == nil {
		var polling context.Context
		polling, s.live.stop = context.WithCancel(context.WithoutCancel(ctx)) // a listener ends with stop
		s.live.work.Go(func() { s.poll(polling) })
	}
	s.live.mu.Unlock()
	return sync.OnceFunc(func() {
		s.live.mu.Lock()
		if s.live.open[t] == l {
			delete(s.live.open, t)
		}
		if len(s.live.open) == 0 && s.live.stop != nil {
			s.live.stop()
			s.live.stop = nil
		}
		s.live.mu.Unlock()
		close(l.gone)
		<-l.turn
	}), nil
}

// hangUp ends the poller, and waits.
func (n *lines) hangUp() {
	n.mu.Lock()
	if n.stop != nil {
		n.stop()
		n.stop = nil
	}
	n.mu.Unlock()
	n.work.Wait()
}

func (n *lines) line(t mailbox.Target) *line {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.open[t]
}

// Deliver implements mailbox.Live. A listener on the same Store is called at once; for those of other
// processes the command goes through the file, and comes within tens of milliseconds.
func (s *Store) Deliver(ctx context.Context, t mailbox.Target, c mailbox.Command) (bool, error) {
	if l := s.live.line(t); l != nil {
		return l.serve(ctx, c)
	}
	ok, err := s.send(ctx, t, c)
	return ok, wrap("command for thread", t.Thread, err)
}

// serve hands a command to a listener, when it is free.
func (l *line) serve(ctx context.Context, c mailbox.Command) (bool, error) {
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

// poll serves what other processes send.
func (s *Store) poll(ctx context.Context) {
	ticker := time.NewTicker(livePoll)
	defer ticker.Stop()
	var last int64
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		letters, err := s.letters(ctx, last)
		if errors.Is(err, engine.ErrClosed) {
			return
		}
		for _, m := range letters {
			if l := s.live.line(m.to); l != nil {
				last = max(last, m.id)
				s.live.work.Go(func() { s.answer(ctx, l, m) })
			}
		}
	}
}

// answer takes a command and says whether it was accepted. What goes wrong is for the sender to
// find out.
func (s *Store) answer(ctx context.Context, l *line, m letter) {
	mine := false
	err := s.file.Write(ctx, func(c *engine.Conn) error {
		n, err := c.Exec("UPDATE live_command SET taken = 1 WHERE id = ? AND taken = 0", m.id)
		mine = n > 0
		return err
	})
	if err != nil || !mine {
		return
	}
	ok, err := l.serve(ctx, m.command)
	ok = ok && err == nil
	_ = s.file.Write(context.WithoutCancel(ctx), func(c *engine.Conn) error {
		_, err := c.Exec("UPDATE live_command SET accepted = ? WHERE id = ?", ok, m.id)
		return err
	})
}
