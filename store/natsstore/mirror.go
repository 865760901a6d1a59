package natsstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/store/internal/state"
	"github.com/mortise-dev/mortise/store/internal/wait"
)

// mirror has the state as far as this process has received it.
type mirror struct {
	mu      sync.Mutex
	state   *state.State[entry]
	threads map[string]*thread
	// memory is how many more bytes of entries may be kept.
	memory int
	// seen is the sequence of the latest message that was folded, moved is closed with the next one.
	seen  uint64
	moved chan struct{}
	// failed is why the state cannot be trusted any more, doubt that some messages may be late.
	failed error
	doubt  bool
	hub    wait.Hub
}

func newMirror(memory int) *mirror {
	return &mirror{state: state.New[entry](), threads: map[string]*thread{}, memory: memory, moved: make(chan struct{})}
}

// thread returns what is known of a thread, which may be nothing.
func (m *mirror) thread(name string) *thread {
	if t := m.threads[name]; t != nil {
		return t
	}
	return &thread{}
}

// errBehind is a mirror that did not receive in time what the servers have.
var errBehind = errors.New("the operations that the servers have did not arrive in time")

// await waits until a condition on the state holds, which is called with the lock, and has the consumer made again meanwhile. It fails
// with errBehind after twice Config.Wait.
func (s *Store) await(ctx context.Context, holds func(*mirror) bool) error {
	const checks = 4
	ticker := time.NewTicker(s.cfg.Wait / checks)
	defer ticker.Stop()
	m := s.mirror
	for n := 0; ; {
		m.mu.Lock()
		ok, failed, moved := holds(m), m.failed, m.moved
		m.mu.Unlock()
		switch {
		case failed != nil:
			return failed
		case ok:
			return nil
		}
		select {
		case <-moved:
		case <-ticker.C:
			n++
			if n == 2*checks {
				return errBehind
			}
			select {
			case s.late <- struct{}{}:
			default: // the consumer is being made again
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// awaitSeq waits until a message of a thread was folded that was written just now: a large one takes its time.
func (s *Store) awaitSeq(ctx context.Context, thread string, seq uint64) error {
	for {
		err := s.await(ctx, func(m *mirror) bool { return m.thread(thread).seq >= seq })
		if !errors.Is(err, errBehind) {
			return err
		}
	}
}

// view reads the state.
func (s *Store) view(read func(*mirror)) error {
	s.mirror.mu.Lock()
	defer s.mirror.mu.Unlock()
	if s.mirror.failed != nil {
		return s.mirror.failed
	}
	read(s.mirror)
	return nil
}

// fail makes all calls fail from now on.
func (m *mirror) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed == nil {
		m.failed = err
	}
	m.wake()
}

// wake wakes those that await. The caller holds the lock.
func (m *mirror) wake() {
	close(m.moved)
	m.moved = make(chan struct{})
}

// catchUp waits until the state has the operations of all threads that were written before. It takes its time while it makes progress.
func (s *Store) catchUp(ctx context.Context) error {
	for since := time.Now(); ctx.Err() == nil; {
		if _, err := s.sameStream(ctx); err != nil {
			return err
		}
		last, err := s.lastSeq(ctx, s.names.threads())
		if err != nil {
			return err
		}
		before := s.progress()
		err = s.await(ctx, func(m *mirror) bool { return m.seen >= last })
		if err == nil {
			return s.view(func(m *mirror) { m.doubt = false })
		}
		if s.progress() > before {
			since = time.Now()
		}
		if !errors.Is(err, errBehind) || time.Since(since) > s.cfg.Patience {
			return err
		}
	}
	return context.Cause(ctx)
}

func (s *Store) progress() uint64 {
	s.mirror.mu.Lock()
	defer s.mirror.mu.Unlock()
	return s.mirror.seen
}

// current waits until the state has what the leader of the stream has. A leader of replicas that is cut off may not know that others have
// more: the state lags by some seconds then.
func (s *Store) current(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s.mirror.mu.Lock()
	doubt := s.mirror.doubt || !s.nc.IsConnected()
	s.mirror.mu.Unlock()
	err := errBehind
	if !doubt {
		var last uint64
		if last, err = s.lastSeq(ctx, s.names.threads()); err == nil {
			err = s.await(ctx, func(m *mirror) bool { return m.seen >= last })
		}
	}
	if errors.Is(err, errBehind) {
		err = s.catchUp(ctx)
	}
	if err != nil {
		return fmt.Errorf("natsstore: stream %q: %w", s.cfg.Stream, redact(s.cfg.URL, err))
	}
	return nil
}
