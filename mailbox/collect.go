package mailbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/mortise-dev/mortise/store"
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

// purgePage is how many dispatches are purged at a time.
const purgePage = 1000

// purge deletes dispatches of terminal statuses that were updated before a time.
func (q *queue) purge(ctx context.Context, before time.Time, statuses ...Status) (err error) {
	n := 0
	ctx, end := q.observe(ctx, Operation{Name: "purge_terminal"})
	defer func() { end(n == 0, err) }()
	for _, status := range statuses {
		for more := true; more; {
			did, err := q.purgeSome(ctx, before, status)
			if n += did; err != nil {
				return fmt.Errorf("mailbox: purge: %w", err)
			}
			more = did == purgePage
		}
	}
	return nil
}

func (q *queue) purgeSome(ctx context.Context, before time.Time, status Status) (n int, err error) {
	s := store.Scan{Index: indexStatus, Group: string(status), To: store.Number(before.UnixMilli())}
	found, err := list(ctx, q, s, purgePage, func(ref store.Ref) (store.Ref, bool, error) { return ref, true, nil })
	if err != nil {
		return 0, err
	}
	old := map[string][]store.Range{}
	for _, ref := range found {
		old[ref.Thread] = append(old[ref.Thread], store.One(kindDispatch, ref.Key))
	}
	for thread, cells := range old {
		did, err := q.purgeThread(ctx, thread, cells, before, status)
		if n += did; err != nil {
			return n, err
		}
	}
	return n, nil
}

// purgeThread deletes those dispatches of a thread that still have the status, and are old.
func (q *queue) purgeThread(ctx context.Context, thread string, cells []store.Range, before time.Time, status Status) (n int, err error) {
	var gone []string
	n, err = q.prune(ctx, thread, store.Query{Cells: cells}, func(_ *Thread, s store.Snapshot, b *store.Batch) (int, error) {
		gone = nil
		for _, c := range cells {
			var d Dispatch
			if ok, err := cell(thread, s, kindDispatch, c.From, &d); err != nil {
				return 0, err
			} else if ok && d.Status == status && d.UpdatedAt.Before(before) {
				gone = append(gone, d.ID)
				b.Delete = append(b.Delete, c, store.One(kindRequest, d.ID))
			}
		}
		return len(gone), nil
	})
	if n > 0 && err == nil {
		err = q.dropEvents(ctx, gone...)
	}
	return n, err
}

// prune deletes parts of a thread by a rule that sees its record, nil if there is none that can be read, and the cells of the query. The rule
// counts what it deletes. What may not have been deleted is found again the next time.
func (q *queue) prune(ctx context.Context, thread string, query store.Query, rule func(*Thread, store.Snapshot, *store.Batch) (int, error)) (n int, err error) {
	query.Cells = append(query.Cells, store.One(kindThread, ""))
	_, err = store.Update(ctx, q.store, thread, query, func(s store.Snapshot) (*store.Batch, error) {
		t, b := &Thread{}, &store.Batch{}
		if ok, err := cell(thread, s, kindThread, "", t); !ok || err != nil {
			t = nil
		}
		var err error
		if n, err = rule(t, s, b); err != nil || n == 0 {
			return nil, err
		}
		return b, nil
	})
	if errors.Is(err, ErrUnknownOutcome) {
		return 0, nil
	}
	return n, wrap("thread", thread, err)
}
