package mailbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/mortise-dev/mortise/internal/queue"
)

// collect drops what is old.
func (m *Mailbox) collect(ctx context.Context) {
	for wait(ctx, m.cfg.Retention.Interval) {
		m.wakeLeft(ctx)
		if err := errors.Join(m.GC(ctx), m.maintain(ctx)); err != nil && ctx.Err() == nil {
			m.cfg.Logger.WarnContext(ctx, "mailbox_gc_failed", "error", err)
		}
	}
}

// maintain calls the embedder's maintenance; a panic is an error.
func (m *Mailbox) maintain(ctx context.Context) (err error) {
	if m.cfg.Retention.Maintain == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			m.cfg.Logger.ErrorContext(ctx, "mailbox_maintenance_panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("mailbox: maintenance panicked: %v", p)
		}
	}()
	return m.cfg.Retention.Maintain(ctx)
}

// GC drops dispatches and events that are old enough.
func (m *Mailbox) GC(ctx context.Context) error {
	const batch = 1000
	now, err := m.queue.Time(ctx)
	if err != nil {
		return fmt.Errorf("mailbox: gc: %w", err)
	}
	for _, q := range []queue.PurgeQuery{
		{Statuses: []Status{Acked, Cancelled, Superseded}, Before: now.Add(-m.cfg.Retention.TTL), Limit: batch},
		{Statuses: []Status{DeadLetter}, Before: now.Add(-m.cfg.Retention.DeadTTL), Limit: batch},
	} {
		for n := batch; n == batch; {
			inner, end := m.queue.Begin(ctx, Operation{Name: queue.OpPurge})
			var err error
			n, err = m.queue.Purge(inner, q)
			end(n == 0, err)
			if err != nil {
				return fmt.Errorf("mailbox: gc: %w", err)
			}
		}
	}
	if m.pump == nil {
		return nil
	}
	if err := m.pump.log.PurgeEvents(ctx, now.Add(-m.cfg.Events.TTL)); err != nil {
		return fmt.Errorf("mailbox: gc of events: %w", err)
	}
	return nil
}
