package natsstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// Due implements mailbox.Store.
func (s *Store) Due(ctx context.Context, q mailbox.DueQuery) (due []mailbox.Head, next time.Time, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, time.Time{}, err
	}
	due, next = s.mirror.due(q)
	return due, next, nil
}

// Threads implements mailbox.Reader.
func (s *Store) Threads(ctx context.Context, q mailbox.ThreadQuery) (out []mailbox.Head, err error) {
	if err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	s.mirror.heads(q.After, func(x summary) bool {
		if len(out) >= q.Limit {
			return false
		}
		h := x.head
		if (q.Tenant == "" || h.Tenant == q.Tenant) && (q.Wait == "" || h.Open.Wait == q.Wait) && (!q.Queued || h.Queued > 0) {
			out = append(out, headFields(h).record())
		}
		return true
	})
	return out, nil
}

// Count implements mailbox.Reader.
func (s *Store) Count(ctx context.Context) (mailbox.Counts, error) {
	if err := context.Cause(ctx); err != nil {
		return mailbox.Counts{}, err
	}
	return s.mirror.counts(), nil
}

// Dispatches implements mailbox.Reader. Without a thread it reads all that have some of those
// statuses.
func (s *Store) Dispatches(ctx context.Context, q mailbox.DispatchQuery) (out []mailbox.Dispatch, err error) {
	threads, order := []string{q.Thread}, byChange
	if q.Thread == "" {
		if threads, err = s.threadsWith(ctx, q.Statuses, time.Time{}); err != nil {
			return nil, err
		}
	} else {
		order = byPlace
	}
	for _, id := range threads {
		list, err := s.dispatches(ctx, id, q.Statuses)
		if err != nil {
			return nil, err
		}
		for i := range list {
			if q.After.ID == "" || order(list[i], q.After) > 0 {
				out = append(out, list[i])
			}
		}
	}
	slices.SortFunc(out, order)
	return out[:min(len(out), max(q.Limit, 0))], nil
}

func byPlace(a, b mailbox.Dispatch) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Seq, b.Seq))
}

func byChange(a, b mailbox.Dispatch) int {
	return cmp.Or(a.UpdatedAt.Compare(b.UpdatedAt), cmp.Compare(a.ID, b.ID))
}

// threadsWith lists threads that have dispatches of those statuses, with one that may have changed
// before a time if it is not zero.
func (s *Store) threadsWith(ctx context.Context, statuses []mailbox.Status, before time.Time) ([]string, error) {
	if err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	return s.mirror.with(statuses, before), nil
}

func wanted(statuses []mailbox.Status, s mailbox.Status) bool {
	return len(statuses) == 0 || slices.Contains(statuses, s)
}

// dispatches lists those of one thread, in no order.
func (s *Store) dispatches(ctx context.Context, id string, statuses []mailbox.Status) (out []mailbox.Dispatch, err error) {
	err = s.read(ctx, id, func(t *thread) error {
		all, err := t.all(ctx, wanted(statuses, mailbox.Queued))
		if err != nil {
			return err
		}
		out = nil
		for _, d := range all {
			if wanted(statuses, d.Fields.Status) {
				out = append(out, d.Fields.record())
			}
		}
		return nil
	})
	return out, err
}

// all finds the dispatches of a thread; without queued not those that nobody has touched.
func (t *thread) all(ctx context.Context, queued bool) (map[string]dispatchNow, error) {
	out, _, err := t.filed(ctx)
	if err != nil {
		return nil, err
	}
	maps.Copy(out, t.doc.Dispatches)
	if !queued {
		return out, nil
	}
	var keys []birthKey
	for e := range t.doc.waiting.turns.from(nil) {
		if _, ok := out[e.ID]; !ok {
			keys = append(keys, birthKey{mailbox.KindDispatch, e.ID})
		}
	}
	if err := t.fetch(ctx, slices.Clone(keys)); err != nil {
		return nil, err
	}
	for _, k := range keys {
		d, ok, err := t.dispatch(ctx, k.id)
		if err != nil {
			return nil, err
		}
		if ok {
			out[k.id] = d
		}
	}
	return out, nil
}
