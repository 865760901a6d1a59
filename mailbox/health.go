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
	// probed is when the loop asked last.
	probed time.Time
}

// Health returns nil while the store can be used, and else why not and since when. A process learns of it when it uses the store, at the
// latest within Config.Poll between Start and Stop. It is logged once when it begins, and once when it ends.
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

func (m *Mailbox) unavailable(ctx context.Context, err error) {
	m.down.mu.Lock()
	defer m.down.mu.Unlock()
	if m.down.err == nil {
		m.down.since = time.Now()
		m.cfg.Logger.ErrorContext(ctx, "mailbox_store_unavailable", "error", err,
			"hint", "nothing is executed, and requests are refused, until the store can be used again; queued work is not lost")
	}
	m.down.err = err
}

// checker is a store that reports whether it can be used.
type checker interface {
	Health(ctx context.Context) error
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
	err := m.probe(ctx)
	if err != nil && ctx.Err() == nil {
		m.unavailable(ctx, err)
	}
	return err
}

// storeFails reports whether an error of one thread is an error of the whole store.
func (m *Mailbox) storeFails(ctx context.Context) bool {
	if m.Health() != nil {
		return true
	}
	err := m.probe(ctx)
	if err != nil {
		m.unavailable(ctx, err)
	}
	return err != nil
}

// probe asks the store whether it can be used.
func (m *Mailbox) probe(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.Waits.Live)
	defer cancel()
	if c, ok := m.cfg.Store.(checker); ok {
		return c.Health(ctx)
	}
	_, err = m.queue.Pauses(ctx)
	return err
}

// warn logs what fails because of the store. While the whole store fails that is not worth a line each.
func (m *Mailbox) warn(ctx context.Context, message string, err error, args ...any) {
	level := slog.LevelWarn
	if !errors.Is(err, ErrConflict) && m.storeFails(ctx) {
		level = slog.LevelDebug
	}
	m.cfg.Logger.Log(ctx, level, message, append(args, "error", err)...) //nolint:sloglint // of the callers
}
