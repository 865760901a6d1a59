package natsstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/mailbox"
)

// Load implements mailbox.Store.
func (s *Store) Load(ctx context.Context, id string, need mailbox.Need) (state mailbox.State, err error) {
	err = s.read(ctx, id, func(t *thread) error {
		state, err = t.state(ctx, need)
		return err
	})
	return state, err
}

// read calls look with a thread, again while records vanish under it. A server that is alone has what the head refers to, or has lost it;
// where there are several, the one that answers may be behind the one that has sent the head.
func (s *Store) read(ctx context.Context, id string, look func(*thread) error) error {
	if err := s.sure(ctx); err != nil {
		return fmt.Errorf("natsstore: thread %.80q: %w", id, err)
	}
	seen := uint64(0)
	for n := 0; ; n++ {
		t, err := s.open(ctx, id)
		if err == nil {
			err = look(t)
		}
		if !errors.Is(err, errGone) {
			return err
		}
		if n > maxGone || t != nil && n > 0 && seen == t.head.Seq && s.stream.Alone() {
			return fmt.Errorf("natsstore: thread %.80q: %w, and its head says that it is", id, err)
		}
		if n > 0 {
			if late := pause(ctx, n); late != nil {
				return fmt.Errorf("natsstore: thread %.80q: %w", id, errors.Join(late, err))
			}
		}
		if t != nil {
			seen = t.head.Seq
		}
	}
}

// state reads what need names.
func (t *thread) state(ctx context.Context, need mailbox.Need) (mailbox.State, error) {
	out := mailbox.State{Head: t.doc.Head.record(), Dispatches: map[string]mailbox.Dispatch{}, Runs: map[string]mailbox.Run{}}
	ids := t.chosen(need, &out)
	if err := t.fetch(ctx, t.needed(need, ids)); err != nil {
		return out, err
	}
	for _, id := range ids {
		if err := t.addDispatch(ctx, need, id, out.Dispatches); err != nil {
			return out, err
		}
	}
	runs := need.Runs
	if need.RunsOf {
		runs = append([]string{out.Head.Open.ID, out.Head.Latest.ID}, runs...)
		for _, id := range ids {
			runs = append(runs, out.Dispatches[id].RunID)
		}
	}
	for _, id := range runs {
		if err := t.addRun(ctx, id, out.Runs); err != nil {
			return out, err
		}
	}
	if need.Image && t.doc.Image != nil {
		var err error
		out.Image, err = t.bytes(ctx, *t.doc.Image)
		return out, err
	}
	return out, nil
}

// chosen are the dispatches that need names, and says in out which is what.
func (t *thread) chosen(need mailbox.Need, out *mailbox.State) []string {
	ids := append([]string{}, need.Dispatches...)
	if need.Claimed && out.Head.Claim != nil {
		ids = append(ids, out.Head.Claim.Dispatch)
	}
	if need.Next {
		out.Next, out.Holder, out.Later = t.doc.waiting.next(need.Now)
		ids = append(ids, out.Next, out.Holder)
	}
	if need.Queued {
		for e := range t.doc.waiting.turns.from(nil) {
			out.Queued = append(out.Queued, e.ID)
		}
		ids = append(ids, out.Queued...)
	}
	out.Duplicate = t.doc.holder(need.Dedupe)
	return append(ids, out.Duplicate)
}

// holder is the dispatch that has a dedupe key and is not terminal.
func (d *document) holder(key string) string {
	if key == "" {
		return ""
	}
	if e, ok := d.waiting.keys.Get(key); ok {
		return e.ID
	}
	if c := d.Head.Claim; c != nil && d.Dispatches[c.Dispatch].Fields.Dedupe == key {
		return c.Dispatch
	}
	return ""
}

// needed are the births that will be looked at for dispatches and their runs.
func (t *thread) needed(need mailbox.Need, ids []string) (keys []birthKey) {
	for _, id := range ids {
		if d, ok := t.doc.Dispatches[id]; !ok || need.Requests && d.Request == nil {
			keys = append(keys, birthKey{mailbox.KindDispatch, id})
		}
	}
	for _, id := range need.Runs {
		if _, ok := t.doc.Runs[id]; !ok {
			keys = append(keys, birthKey{mailbox.KindRun, id})
		}
	}
	if !need.RunsOf {
		return keys
	}
	for _, id := range ids {
		e := t.doc.waiting.get(id)
		if e == nil {
			continue
		}
		if _, ok := t.doc.Runs[e.Run]; !ok {
			keys = append(keys, birthKey{mailbox.KindRun, e.Run})
		}
	}
	return keys
}

func (t *thread) addDispatch(ctx context.Context, need mailbox.Need, id string, to map[string]mailbox.Dispatch) error {
	if _, there := to[id]; id == "" || there {
		return nil
	}
	d, ok, err := t.dispatch(ctx, id)
	if err != nil || !ok {
		return err
	}
	out := d.Fields.record()
	if need.Requests {
		if out.Request, err = t.request(ctx, d); err != nil {
			return err
		}
	}
	to[id] = out
	return nil
}

func (t *thread) addRun(ctx context.Context, id string, to map[string]mailbox.Run) error {
	if _, there := to[id]; id == "" || there {
		return nil
	}
	r, ok, err := t.run(ctx, id)
	if err != nil || !ok {
		return err
	}
	out := r.Fields.record()
	out.Input = append([]string(nil), out.Input...)
	if out.Data, err = t.bytes(ctx, r.Data); err != nil {
		return err
	}
	to[id] = out
	return nil
}

// Find implements mailbox.Store.
func (s *Store) Find(ctx context.Context, kind mailbox.Kind, id string) (owner string, found bool, err error) {
	if err := s.sure(ctx); err != nil {
		return "", false, err
	}
	b, err := s.birth(ctx, kind, id)
	if err != nil || b == nil {
		return "", false, err
	}
	err = s.read(ctx, b.Thread, func(t *thread) error {
		found, err = t.knows(ctx, kind, id)
		return err
	})
	return b.Thread, found, err
}

// knows says whether an id is one of the thread's. A birth alone may be left from somebody who
// did not get through.
func (t *thread) knows(ctx context.Context, kind mailbox.Kind, id string) (found bool, err error) {
	if kind == mailbox.KindRun {
		_, found, err = t.run(ctx, id)
		return found, err
	}
	_, found, err = t.dispatch(ctx, id)
	return found, err
}
