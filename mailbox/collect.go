package mailbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// collecting drops what is old, from time to time.
func (m *Mailbox) collecting(ctx context.Context) {
	for wait(ctx, m.cfg.Retention.Interval) {
		m.wakeLeft(ctx)
		if err := errors.Join(m.GC(ctx), m.maintain(ctx)); err != nil && ctx.Err() == nil {
			m.warn(ctx, "mailbox_gc_failed", err)
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

// GC drops what [Retention] does not keep.
func (m *Mailbox) GC(ctx context.Context) error {
	now, err := m.readTime(ctx)
	if err != nil {
		return fmt.Errorf("mailbox: gc: %w", err)
	}
	if err := m.purge(ctx, now.Add(-m.cfg.Retention.TTL), Acked, Cancelled, Superseded); err != nil {
		return err
	}
	if err := m.purge(ctx, now.Add(-m.cfg.Retention.DeadTTL), DeadLetter); err != nil {
		return err
	}
	if err := m.retain(ctx, now); err != nil {
		return fmt.Errorf("mailbox: retention: %w", err)
	}
	if m.pump == nil {
		return nil
	}
	if err := m.pump.log.PurgeEvents(ctx, now.Add(-m.cfg.Events.TTL)); err != nil {
		return fmt.Errorf("mailbox: gc of events: %w", err)
	}
	return nil
}
