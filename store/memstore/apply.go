package memstore

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// apply makes a change, or nothing.
func (s *Store) apply(id string, c mailbox.Change) error {
	t := s.threads[id]
	if t == nil {
		t = newThread(id)
	}
	if c.Drop {
		s.forget(t, c.Head.Fence)
		return nil
	}
	if err := s.check(t, c); err != nil {
		return err
	}
	if s.threads[id] == nil || t.head.Seq == 0 {
		s.threads[id] = t
		s.names.Set(id)
	}
	s.putHead(t, *c.Head)
	for i := range c.Dispatches {
		s.put(t, c.Dispatches[i])
	}
	for i := range c.Runs {
		s.runs[c.Runs[i].ID] = cloneRun(c.Runs[i])
	}
	for _, m := range c.Messages {
		t.write(m)
	}
	if c.Image != nil {
		t.image = bytes.Clone(c.Image)
	}
	if c.Signal {
		s.bells.ring(id, c.Dispatch)
	}
	return nil
}

// check refuses what does not fit. Nothing has been written then.
func (s *Store) check(t *thread, c mailbox.Change) error {
	for i := range c.Dispatches {
		d := &c.Dispatches[i]
		if old, ok := s.dispatches[d.ID]; (ok && old.Thread != t.head.Thread) || d.Thread != t.head.Thread {
			return fmt.Errorf("memstore: dispatch %.80q: %w in another thread", d.ID, mailbox.ErrExists)
		}
		if owner := t.live[d.Dedupe]; d.Dedupe != "" && !d.Status.Terminal() && owner != "" && owner != d.ID {
			return fmt.Errorf("memstore: dispatch %.80q: dedupe key: %w", d.ID, mailbox.ErrExists)
		}
	}
	for i := range c.Runs {
		r := &c.Runs[i]
		if old, ok := s.runs[r.ID]; (ok && old.Thread != t.head.Thread) || r.Thread != t.head.Thread {
			return fmt.Errorf("memstore: run %.80q: %w in another thread", r.ID, mailbox.ErrExists)
		}
	}
	return t.checkLog(c)
}

func (t *thread) checkLog(c mailbox.Change) error {
	length := len(t.log)
	fresh := map[string]bool{}
	for _, m := range c.Messages {
		at, known := t.seqs[m.ID]
		switch {
		case m.Seq >= 1 && m.Seq <= len(t.log) && known && at == m.Seq:
		case m.Seq == length+1 && !known && !fresh[m.ID] && m.ID != "":
			length, fresh[m.ID] = length+1, true
		default:
			return fmt.Errorf("memstore: thread %.80q: message %.80q at %d: %w: the log has %d", t.head.Thread, m.ID, m.Seq, mailbox.ErrConflict, length)
		}
	}
	if c.Head.Messages != length {
		return fmt.Errorf("memstore: thread %.80q: %w: the log would have %d messages, the head says %d", t.head.Thread, mailbox.ErrConflict, length, c.Head.Messages)
	}
	return nil
}

func (t *thread) write(m mailbox.Message) {
	m.Data = bytes.Clone(m.Data)
	if m.Seq > len(t.log) {
		t.log = append(t.log, m)
		t.seqs[m.ID] = m.Seq
		return
	}
	old := t.log[m.Seq-1]
	m.At, m.Run = old.At, old.Run
	t.log[m.Seq-1] = m
}

func (s *Store) putHead(t *thread, h mailbox.Head) {
	if !t.head.DueAt.IsZero() {
		s.byRank.Delete(dueOf(t.head))
		s.byTime.Delete(dueOf(t.head))
	}
	if t.head.Claim != nil {
		s.claims[t.head.Tenant]--
		if s.claims[t.head.Tenant] == 0 {
			delete(s.claims, t.head.Tenant)
		}
	}
	t.head = cloneHead(h)
	if h.Claim != nil {
		s.claims[h.Tenant]++
	}
	if !h.DueAt.IsZero() {
		s.byRank.Set(dueOf(h))
		s.byTime.Set(dueOf(h))
	}
}

func (s *Store) put(t *thread, d mailbox.Dispatch) {
	if old, ok := s.dispatches[d.ID]; ok {
		s.drop(t, old)
		d.Request = old.Request
	} else {
		d.Request = bytes.Clone(d.Request)
	}
	s.dispatches[d.ID] = d
	e := entryOf(d)
	s.counts.Status[d.Status]++
	s.history.Set(e)
	t.all.Set(e)
	if d.Dedupe != "" && !d.Status.Terminal() {
		t.live[d.Dedupe] = d.ID
	}
	if d.Status == mailbox.Queued {
		t.queue.Set(e)
		t.times.Set(e)
		if d.Holding {
			t.holders.Set(e)
		}
	}
}

// forget drops a thread with all that is in it but its fence.
func (s *Store) forget(t *thread, fence uint64) {
	s.putHead(t, mailbox.Head{Thread: t.head.Thread})
	for _, e := range t.all.Items() {
		s.drop(t, s.dispatches[e.id])
		delete(s.dispatches, e.id)
		s.events.forget(e.id)
	}
	for id := range s.runs {
		if s.runs[id].Thread == t.head.Thread {
			delete(s.runs, id)
		}
	}
	s.bells.drop(t.head.Thread)
	delete(s.threads, t.head.Thread)
	s.names.Delete(t.head.Thread)
	if fence > 0 {
		s.threads[t.head.Thread] = newThread(t.head.Thread)
		s.threads[t.head.Thread].head.Fence = fence
	}
}

// drop takes a dispatch out of every index.
func (s *Store) drop(t *thread, d mailbox.Dispatch) {
	e := entryOf(d)
	s.counts.Status[d.Status]--
	s.history.Delete(e)
	if d.Dedupe != "" && t.live[d.Dedupe] == d.ID {
		delete(t.live, d.Dedupe)
	}
	t.all.Delete(e)
	t.queue.Delete(e)
	t.times.Delete(e)
	t.holders.Delete(e)
}

func cloneHead(h mailbox.Head) mailbox.Head {
	if h.Claim != nil {
		c := *h.Claim
		h.Claim = &c
	}
	return h
}

func cloneRun(r mailbox.Run) mailbox.Run {
	r.Input, r.Data = slices.Clone(r.Input), bytes.Clone(r.Data)
	return r
}

// later is the first time in an index that is after now.
func (t *thread) later(now time.Time) (at time.Time) {
	t.times.Ascend(entry{available: now, seq: ^uint64(0)}, func(e entry) bool {
		at = e.available
		return !at.After(now)
	})
	if !at.After(now) {
		return time.Time{}
	}
	return at
}
