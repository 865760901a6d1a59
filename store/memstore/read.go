package memstore

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// state reads what need names. The caller holds the lock.
func (s *Store) state(id string, need mailbox.Need) mailbox.State {
	t := s.threads[id]
	if t == nil {
		t = newThread(id)
	}
	out := mailbox.State{
		Head: cloneHead(t.head), Dispatches: map[string]mailbox.Dispatch{}, Runs: map[string]mailbox.Run{},
		Duplicate: t.live[need.Dedupe],
	}
	ids := slices.Clone(need.Dispatches)
	if need.Claimed && t.head.Claim != nil {
		ids = append(ids, t.head.Claim.Dispatch)
	}
	if need.Next {
		out.Next, out.Holder, out.Later = t.next(need.Now)
		ids = append(ids, out.Next, out.Holder)
	}
	if need.Queued {
		t.queue.Scan(func(e entry) bool {
			out.Queued = append(out.Queued, e.id)
			return true
		})
		ids = append(ids, out.Queued...)
	}
	for _, id := range append(ids, out.Duplicate) {
		if d, ok := s.dispatches[id]; ok && d.Thread == t.head.Thread {
			out.Dispatches[id] = copied(d, need.Requests)
		}
	}
	for _, id := range t.runsOf(need, out.Dispatches) {
		if r, ok := s.runs[id]; ok && r.Thread == t.head.Thread {
			out.Runs[id] = cloneRun(r)
		}
	}
	if need.Image {
		out.Image = bytes.Clone(t.image)
	}
	return out
}

func (t *thread) runsOf(need mailbox.Need, dispatches map[string]mailbox.Dispatch) []string {
	ids := slices.Clone(need.Runs)
	if need.RunsOf {
		ids = append(ids, t.head.Open.ID, t.head.Latest.ID)
		for _, d := range dispatches {
			ids = append(ids, d.RunID)
		}
	}
	return ids
}

func (t *thread) next(now time.Time) (next, holder string, later time.Time) {
	t.queue.Scan(func(e entry) bool {
		if !e.available.After(now) {
			next = e.id
		}
		return next == ""
	})
	if e, ok := t.holders.Min(); ok {
		holder = e.id
	}
	return next, holder, t.later(now)
}

func copied(d mailbox.Dispatch, request bool) mailbox.Dispatch {
	if !request {
		d.Request = nil
	}
	d.Request = bytes.Clone(d.Request)
	return d
}

// Due implements mailbox.Store.
func (s *Store) Due(ctx context.Context, q mailbox.DueQuery) (out []mailbox.Head, next time.Time, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, time.Time{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byRank.Scan(func(d due) bool {
		if len(out) >= q.Limit {
			return false
		}
		if !d.at.After(q.By) && !slices.Contains(q.Skip, d.tenant) {
			out = append(out, cloneHead(s.threads[d.thread].head))
		}
		return true
	})
	s.byTime.Ascend(due{at: q.By.Add(1)}, func(d due) bool {
		next = d.at
		return false
	})
	return out, next, nil
}

// Dispatches implements mailbox.Reader.
func (s *Store) Dispatches(ctx context.Context, q mailbox.DispatchQuery) (out []mailbox.Dispatch, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	index, past := s.history, entry.changedBefore
	if q.Thread != "" {
		t := s.threads[q.Thread]
		if t == nil {
			return nil, nil
		}
		index, past = t.all, entry.queuedBefore
	}
	after := entryOf(q.After)
	take := func(e entry) bool {
		if len(out) >= q.Limit {
			return false
		}
		d := s.dispatches[e.id]
		first := q.After.ID == "" || past(after, e)
		if first && d.ID != "" && (len(q.Statuses) == 0 || slices.Contains(q.Statuses, d.Status)) {
			out = append(out, copied(d, false))
		}
		return true
	}
	if q.After.ID == "" {
		index.Scan(take)
	} else {
		index.Ascend(after, take)
	}
	return out, nil
}

// Messages implements mailbox.Reader.
func (s *Store) Messages(ctx context.Context, id string, from, limit int) ([]mailbox.Message, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.threads[id]
	if t == nil || from > len(t.log) || limit <= 0 {
		return nil, nil
	}
	from = max(from, 1)
	out := slices.Clone(t.log[from-1:][:min(len(t.log)-from+1, limit)])
	for i := range out {
		out[i].Data = bytes.Clone(out[i].Data)
	}
	return out, nil
}

// Threads implements mailbox.Reader.
func (s *Store) Threads(ctx context.Context, q mailbox.ThreadQuery) (out []mailbox.Head, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names.Ascend(q.After, func(id string) bool {
		if len(out) >= q.Limit {
			return false
		}
		h := s.threads[id].head
		if (id > q.After || q.After == "") && (q.Tenant == "" || h.Tenant == q.Tenant) && (q.Wait == "" || h.Open.Wait == q.Wait) && (!q.Queued || h.Queued > 0) {
			out = append(out, cloneHead(h))
		}
		return true
	})
	return out, nil
}
