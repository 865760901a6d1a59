package phases

import (
	"context"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// moment is the context of hooks that are called together: it ends when they have to
// come back. It starts a timer only when Done is called, since most hooks are
// back long before.
type moment struct {
	context.Context //nolint:containedctx // it is one itself

	until    time.Time
	messages []abi.Message

	mu  sync.Mutex
	err error
	// timed is made by Done.
	timed context.Context //nolint:containedctx // as above
	stop  context.CancelFunc
}

// Deadline is that of the hooks, or of the run if that is earlier.
func (m *moment) Deadline() (time.Time, bool) {
	if d, ok := m.Context.Deadline(); ok && d.Before(m.until) {
		return d, true
	}
	return m.until, true
}

// Done is closed when the moment is over.
func (m *moment) Done() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.timed == nil {
		m.timed, m.stop = context.WithDeadline(m.Context, m.until)
		if m.check(time.Now()) != nil {
			m.stop()
		}
	}
	return m.timed.Done()
}

// Err returns why it is over.
func (m *moment) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.check(time.Now())
}

func (m *moment) check(now time.Time) error {
	switch {
	case m.err != nil:
	case m.Context.Err() != nil:
		m.err = m.Context.Err()
	case !now.Before(m.until):
		m.err = context.DeadlineExceeded
	}
	return m.err
}

// Value finds the conversation, and what the run's context has.
func (m *moment) Value(key any) any {
	if key == (conversationKey{}) {
		return m.messages
	}
	m.mu.Lock()
	timed := m.timed
	m.mu.Unlock()
	if timed != nil { // Contexts made of this one then need no goroutine.
		return timed.Value(key)
	}
	return m.Context.Value(key)
}

// end ends the moment: the phase waits for the hooks no more.
func (m *moment) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = context.Canceled
	}
	if m.stop != nil {
		m.stop()
	}
}
