package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// PurgeQuery selects terminal dispatches.
type PurgeQuery struct {
	Statuses []Status
	// Before is when they were updated at the latest, exclusively.
	Before time.Time
	Limit  int
}

// Purge deletes terminal dispatches, and returns how many there were.
func (q *Queue) Purge(ctx context.Context, query PurgeQuery) (n int, err error) {
	for _, status := range query.Statuses {
		if !status.Terminal() || query.Limit <= n {
			continue
		}
		s := store.Scan{Index: indexStatus, Group: string(status), To: store.Number(query.Before.UnixMilli()), Limit: min(query.Limit-n, maxPage)}
		list, err := q.store.Scan(ctx, s)
		if err != nil {
			return n, fmt.Errorf("mailbox: purge: %w", err)
		}
		for _, thread := range slices.Compact(sortedThreads(list)) {
			did, err := q.purge(ctx, thread, list, query)
			n += did
			if err != nil {
				return n, wrap("purge of thread", thread, err)
			}
		}
	}
	return n, nil
}

func sortedThreads(list []store.Ref) (out []string) {
	for _, ref := range list {
		out = append(out, ref.Thread)
	}
	slices.Sort(out)
	return out
}

// purge deletes those dispatches of a thread that are still old and terminal.
func (q *Queue) purge(ctx context.Context, thread string, list []store.Ref, query PurgeQuery) (n int, err error) {
	var ranges []store.Range
	for _, ref := range list {
		if ref.Thread == thread {
			ranges = append(ranges, store.One(kindDispatch, ref.Key))
		}
	}
	var gone []string
	_, err = store.Update(ctx, q.store, thread, store.Query{Cells: ranges}, func(s store.Snapshot) (*store.Batch, error) {
		gone = nil
		b := &store.Batch{}
		for _, c := range s.Cells {
			var d Dispatch
			if err := decode(thread, cellID{c.Kind, c.Key}, c.Value, &d); err != nil {
				return nil, err
			}
			if !slices.Contains(query.Statuses, d.Status) || !d.Status.Terminal() || !d.UpdatedAt.Before(query.Before) {
				continue
			}
			gone = append(gone, d.ID)
			b.Delete = append(b.Delete, store.One(kindDispatch, d.ID), store.One(kindRequest, d.ID))
		}
		if len(gone) == 0 {
			return nil, nil
		}
		return b, nil
	})
	if err == nil {
		err = q.dropEvents(ctx, gone...)
	}
	return len(gone), err
}
