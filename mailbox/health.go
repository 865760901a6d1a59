package mailbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// health is why the store cannot be used, and since when.
type health struct {
	mu    sync.Mutex
	err   error
	since time.Time
	// probed is when the store was asked last.
	probed time.Time
}

// Health returns nil while the store can be used, and else why not and since when. Between Start and Stop
// the store is asked once in a Config.Poll, and one that does not answer for as long again, a second at least, cannot be used. It is logged once when it begins, and once when it ends.
func (m *Mailbox) Health() error {
	m.down.mu.Lock()
	defer m.down.mu.Unlock()
	if m.down.err == nil {
		return nil
	}
	return fmt.Errorf("mailbox: the store cannot be used since %s: %w", m.down.since.UTC().Format(time.RFC3339), m.down.err)
}

// available is called when the store has answered. One that was down has to answer a probe as well: what a process remembers may answer, too.
func (m *Mailbox) available(ctx context.Context) {
	if m.Health() == nil || m.probe(ctx) != nil {
		return
	}
	m.down.mu.Lock()
	defer m.down.mu.Unlock()
	if m.down.err != nil {
		m.cfg.Logger.InfoContext(ctx, "mailbox_store_available", "after", time.Since(m.down.since).Round(time.Millisecond))
	}
	m.down.err = nil
}

// monitor learns whether the store can be used, whatever other calls wait for.
func (m *Mailbox) monitor(ctx context.Context) {
	for wait(ctx, m.cfg.Poll) {
		if m.check(ctx) == nil {
			m.available(ctx)
		}
	}
}

// check probes the store once in a Config.Poll: a listing may be answered from what the process remembers.
func (m *Mailbox) check(ctx context.Context) error {
	m.down.mu.Lock()
	due := time.Since(m.down.probed) >= m.cfg.Poll
	if due {
		m.down.probed = time.Now()
	}
	m.down.mu.Unlock()
	if !due {
		return nil
	}
	return m.fails(ctx)
}

// fails returns why the whole store fails, if it does.
func (m *Mailbox) fails(ctx context.Context) error {
	err := m.probe(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	m.down.mu.Lock()
	defer m.down.mu.Unlock()
	if m.down.err == nil {
		m.down.since = time.Now()
		m.cfg.Logger.ErrorContext(ctx, "mailbox_store_unavailable", "error", err,
			"hint", "nothing is executed, and requests are refused, until the store can be used again; queued work is not lost")
	}
	m.down.err = err
	return err
}

// checker is a store that reports whether it can be used.
type checker interface {
	Health(ctx context.Context) error
}

// probe asks the store whether it can be used.
func (m *Mailbox) probe(ctx context.Context) (err error) {
	patience := min(max(m.cfg.Poll, time.Second), m.cfg.Waits.Live)
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), patience, fmt.Errorf("it has not answered for %v", patience))
	defer cancel()
	if c, ok := m.cfg.Store.(checker); ok {
		return c.Health(ctx)
	}
	_, err = m.Pauses(ctx)
	return err
}

// warn logs what fails because of the store. While the whole store fails that is not worth a line each.
func (m *Mailbox) warn(ctx context.Context, message string, err error, args ...any) {
	level := slog.LevelWarn
	if !errors.Is(err, ErrConflict) && (m.Health() != nil || m.fails(ctx) != nil) {
		level = slog.LevelDebug
	}
	m.cfg.Logger.Log(ctx, level, message, append(args, "error", err)...) //nolint:sloglint // of the callers
}

// maxAside is how many threads may be set aside at once. When more fail it is the store that does, not they.
const maxAside = 1000

// aside is a thread that failed, and is left alone for a while so that it does not keep the others back: how often it failed since it last
// went well, and until when it is left alone.
type aside struct {
	times int
	until time.Time
}

// setAside leaves a thread alone that failed, longer each time that it fails, and returns until when; zero if too many threads failed.
func (m *Mailbox) setAside(ctx context.Context, thread string, err error) time.Time {
	m.mu.Lock()
	a, known := m.asides[thread]
	if !known && len(m.asides) >= maxAside {
		m.mu.Unlock()
		return time.Time{}
	}
	a.times++
	pause := doubled(m.cfg.Retry.Aside, m.cfg.Retry.MaxAside, a.times, 16)
	a.until = m.now().Add(pause)
	m.asides[thread] = a
	m.mu.Unlock()
	m.event(ctx, "set_aside", thread, "", err)
	m.cfg.Logger.WarnContext(ctx, "mailbox_thread_set_aside", "thread", thread, "failures", a.times, "pause", pause, "error", err)
	return a.until
}

// asideUntil is the time before which a thread is left alone, or zero.
func (m *Mailbox) asideUntil(thread string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.asides[thread]; a.until.After(m.now()) {
		return a.until
	}
	return time.Time{}
}

// asideCount is how many threads are set aside. Those that failed long ago count no more.
func (m *Mailbox) asideCount(now time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	for thread, a := range m.asides {
		if now.Sub(a.until) > m.cfg.Retry.MaxAside {
			delete(m.asides, thread)
		}
	}
	return len(m.asides)
}

// doubled is how long to wait after a number of failures: base, doubled each time up to limit times, at most the greatest. None counts as one.
func doubled(base, most time.Duration, times, limit int) time.Duration {
	n := min(max(times-1, 0), limit)
	if base > most>>n {
		return most
	}
	return base << n
}
