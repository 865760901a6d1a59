package natsstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
)

// Purge implements mailbox.Store. It drops the oldest of each thread, thread by thread.
func (s *Store) Purge(ctx context.Context, q mailbox.PurgeQuery) (n int, err error) {
	statuses := slices.DeleteFunc(slices.Clone(q.Statuses), func(x mailbox.Status) bool { return !x.Terminal() })
	if len(statuses) == 0 || q.Limit <= 0 {
		return 0, context.Cause(ctx)
	}
	threads, err := s.threadsWith(ctx, statuses, q.Before)
	if err != nil {
		return 0, err
	}
	q.Statuses = statuses
	for _, id := range threads {
		if n >= q.Limit {
			break
		}
		dropped, err := s.purge(ctx, id, q, q.Limit-n)
		n += dropped
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// purge drops dispatches of one thread in one transition.
func (s *Store) purge(ctx context.Context, id string, q mailbox.PurgeQuery, limit int) (n int, err error) {
	u := &update{s: s, id: id, reads: true, sure: s.stream.Alone()}
	err = u.run(ctx, func(ctx context.Context, t *thread) error {
		n, err = u.cutOld(ctx, t, q, limit)
		return err
	})
	return n, err
}

// cutOld drops the oldest dispatches of a thread.
func (u *update) cutOld(ctx context.Context, t *thread, q mailbox.PurgeQuery, limit int) (int, error) {
	all, err := t.all(ctx, false)
	if err != nil {
		return 0, err
	}
	list := slices.SortedFunc(maps.Values(all), func(a, b dispatchNow) int { return byChange(a.Fields.record(), b.Fields.record()) })
	oldest, drop := time.Time{}, []dispatchNow{}
	for i := range list {
		d := &list[i].Fields
		switch {
		case len(drop) < limit && d.UpdatedAt.Before(q.Before) && slices.Contains(q.Statuses, d.Status):
			drop = append(drop, list[i])
		case d.Status.Terminal() && oldest.IsZero():
			oldest = d.UpdatedAt
		}
	}
	if len(drop) == 0 && oldest.Equal(t.doc.Oldest) {
		return 0, nil
	}
	t.doc.Oldest = oldest
	if err := t.cut(ctx, drop); err != nil {
		u.s.discard(t.made)
		return 0, err
	}
	return len(drop), u.commit(ctx, t)
}

// cut takes dispatches out of a thread, with their births. What these carry goes to pages.
func (t *thread) cut(ctx context.Context, list []dispatchNow) error {
	if len(list) == 0 {
		return nil
	}
	keys := make([]birthKey, 0, len(list))
	for i := range list {
		keys = append(keys, birthKey{mailbox.KindDispatch, list[i].Fields.ID})
	}
	if err := t.fetch(ctx, slices.Clone(keys)); err != nil {
		return err
	}
	changed, err := t.merge(ctx, page{})
	if err != nil {
		return err
	}
	for i := range list {
		d := &list[i]
		if b := t.births[keys[i]]; b != nil && b.Thread == t.id {
			t.old = append(t.old, b.ref)
		}
		if d.Request != nil && d.Request.Ref != nil {
			t.old = append(t.old, *d.Request.Ref)
		}
		t.doc.count(d.Fields.Status, -1)
		delete(t.doc.Dispatches, d.Fields.ID)
		if err := t.cutPages(ctx, d, changed); err != nil {
			return err
		}
	}
	for n, p := range changed {
		if err := t.putPage(ctx, n, p); err != nil {
			return err
		}
	}
	return nil
}

// cutPages takes a dispatch out of its page, and says which pages change: that one, and those in its birth.
func (t *thread) cutPages(ctx context.Context, d *dispatchNow, changed map[uint64]page) error {
	id, home := d.Fields.ID, d.Home/homesPerPage
	p, err := t.page(ctx, home)
	if err != nil {
		return err
	}
	if _, ok := p.Dispatches[id]; ok {
		delete(p.Dispatches, id)
		changed[home] = p
	}
	for n, host := range t.doc.Hosts {
		if host != id {
			continue
		}
		if changed[n], err = t.page(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// goneTTL is how long the record stays that says that a thread is gone, for those who follow the heads. It stays for good if it has a
// fence to keep.
const goneTTL = 24 * time.Hour

// forget drops a thread but its fence. Its head goes first; what it referred to is dropped then, and what a damaged one does not
// tell is found by a sweep.
func (u *update) forget(ctx context.Context, t *thread, fence uint64) error {
	if t.head.Seq == 0 {
		return nil
	}
	ids, err := t.ids(ctx)
	if err == nil {
		err = t.fetch(ctx, slices.Clone(ids))
	}
	if err != nil && !damaged(err) {
		return err
	}
	for _, k := range ids {
		if b := t.births[k]; b != nil && b.Thread == t.id {
			t.old = append(t.old, b.ref)
		}
	}
	t.doc = document{Format: format, Writes: t.doc.Writes, Gone: true}
	t.doc.Head.Thread, t.doc.Head.Fence = t.id, fence
	var options []jetstream.PublishOpt
	if fence == 0 {
		options = append(options, jetstream.WithMsgTTL(goneTTL))
	}
	if err := u.commit(ctx, t, options...); err != nil {
		return err
	}
	u.s.forgetEvents(ctx, ids)
	last := t.head.Seq
	if err := u.s.stream.Purge(ctx, jetstream.WithPurgeSubject(u.s.names.parts(u.id)), jetstream.WithPurgeSequence(last)); err != nil {
		u.s.cfg.Logger.WarnContext(ctx, "natsstore_records_not_dropped", "stream", u.s.cfg.Name, "error", err)
	}
	return nil
}

// ids are all dispatches and runs of a thread.
func (t *thread) ids(ctx context.Context) (keys []birthKey, err error) {
	all, err := t.all(ctx, true)
	if err != nil {
		return nil, err
	}
	for id := range all {
		keys = append(keys, birthKey{mailbox.KindDispatch, id})
	}
	for e := range t.doc.waiting.turns.from(nil) {
		keys = append(keys, birthKey{mailbox.KindRun, e.Run})
	}
	for id := range t.doc.Runs {
		keys = append(keys, birthKey{mailbox.KindRun, id})
	}
	_, runs, err := t.filed(ctx)
	if err != nil {
		return nil, err
	}
	for id := range runs {
		keys = append(keys, birthKey{mailbox.KindRun, id})
	}
	slices.SortFunc(keys, func(a, b birthKey) int {
		if a.kind != b.kind {
			return slices.Compare([]string{string(a.kind)}, []string{string(b.kind)})
		}
		return slices.Compare([]string{a.id}, []string{b.id})
	})
	return slices.Compact(keys), nil
}
