package mailbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// collect drops what is old.
func (m *Mailbox) collect(ctx context.Context) {
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

// gcBatch is how much is dropped at a time.
const gcBatch = 1000

// GC drops what [Retention] does not keep.
func (m *Mailbox) GC(ctx context.Context) error {
	now, err := m.readTime(ctx)
	if err != nil {
		return fmt.Errorf("mailbox: gc: %w", err)
	}
	for _, q := range []purgeQuery{
		{Statuses: []Status{Acked, Cancelled, Superseded}, Before: now.Add(-m.cfg.Retention.TTL), Limit: gcBatch},
		{Statuses: []Status{DeadLetter}, Before: now.Add(-m.cfg.Retention.DeadTTL), Limit: gcBatch},
	} {
		for n := gcBatch; n == gcBatch; {
			if n, err = m.purge(ctx, q); err != nil {
				return fmt.Errorf("mailbox: gc: %w", err)
			}
		}
	}
	if err := m.retain(ctx, now); err != nil {
		return err
	}
	if m.pump == nil {
		return nil
	}
	if err := m.pump.log.PurgeEvents(ctx, now.Add(-m.cfg.Events.TTL)); err != nil {
		return fmt.Errorf("mailbox: gc of events: %w", err)
	}
	return nil
}

// retain drops threads, runs and messages. Runs and messages are counted in the threads that were changed since the last time.
func (m *Mailbox) retain(ctx context.Context, now time.Time) error {
	c := m.cfg.Retention
	if max(c.Threads, c.Runs, c.Messages) == 0 && max(c.MaxThreads, c.MaxRuns, c.MaxMessages) == 0 {
		return nil
	}
	ago := func(d time.Duration) time.Time {
		if d == 0 {
			return time.Time{}
		}
		return now.Add(-d)
	}
	r := retainQuery{
		ThreadsBefore: ago(c.Threads), Threads: c.MaxThreads, RunsBefore: ago(c.Runs), Runs: c.MaxRuns,
		MessagesBefore: ago(c.Messages), Messages: c.MaxMessages, Limit: gcBatch,
	}
	m.mu.Lock()
	r.Since = m.retained
	m.mu.Unlock()
	for {
		out, err := m.retainOnce(ctx, r)
		if err != nil {
			return err
		}
		if out.Threads+out.Runs+out.Messages > 0 {
			m.cfg.Logger.InfoContext(ctx, "mailbox_retention", "threads", out.Threads, "runs", out.Runs, "messages", out.Messages)
		}
		if max(out.Threads, out.Runs) < gcBatch {
			break
		}
	}
	m.mu.Lock()
	m.retained = now.Add(-retainOverlap)
	m.mu.Unlock()
	return nil
}

// retainOverlap is for changes whose times are a little earlier than when they could be listed.
const retainOverlap = time.Minute
