package lane

import (
	"cmp"
	"context"
	"slices"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// rounds is how often a lane that changes meanwhile is searched.
const rounds = 4

// Find returns the lane of a request, locked, and how the request relates to it. Unless look is set the lane now ends
// with the request.
func (s *Set) Find(ctx context.Context, k *Key, r *wire.Request, look bool) (*Lane, Change) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	name := k.Group()
	m := &matcher{r: r, canon: make([]wire.Hash, len(r.Items)), known: make([]bool, len(r.Items)), digests: make([]uint64, len(r.Items))}
	for i := range r.Items {
		m.digests[i] = r.Digest(i)
	}
	for round := 1; ; round++ {
		best, p := m.best(s.sync(ctx, name))
		change := New
		if best != nil {
			best.Lock() // it may have moved meanwhile
			if now := m.common(best.look()); now != p && round < rounds {
				best.Unlock()
				continue
			}
			s.undone(ctx, best)
			change = m.change(best.look(), p, k.Session != "")
		}
		if change == New && best != nil {
			best.Unlock()
			best = nil
		} else if best == nil && !look {
			if best, p = s.elsewhere(ctx, k, m); best != nil {
				change = Fork // of another session: a client that continues one under a new id
			}
		}
		if look {
			return best, change
		}
		return s.take(k, m, best, p, change), change
	}
}

// elsewhere returns a lane of another session, locked, from which the first request of a session continues.
func (s *Set) elsewhere(ctx context.Context, k *Key, m *matcher) (best *Lane, p int) {
	origin := m.origin(k)
	if origin == "" {
		return nil, 0
	}
	if s.log != nil {
		s.load(ctx, origin)
	}
	var all []*Lane
	s.All(func(l *Lane) {
		if l.view.Load().origin == origin {
			all = append(all, l)
		}
	})
	if best, _ = m.best(all); best == nil {
		return nil, 0
	}
	best.Lock()
	if p = m.common(best.look()); !m.answered(p) {
		best.Unlock()
		return nil, 0
	}
	return best, p
}

// load reads lanes with an origin from the store.
func (s *Set) load(ctx context.Context, origin string) {
	refs, err := s.log.origins(ctx, origin)
	if err != nil {
		s.cfg.Failed(err)
	}
	known := map[string]bool{}
	s.All(func(l *Lane) { known[l.view.Load().id] = true })
	for _, id := range refs {
		if known[id] {
			continue
		}
		if st, err := s.log.read(ctx, id); err == nil && st != nil {
			s.join(st.Group, &Lane{State: st, base: st.copy()})
		}
	}
}

// Newest returns the id of the lane with a key that was used last, if there is one.
func (s *Set) Newest(ctx context.Context, k *Key) string {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	var newest *view
	for _, l := range s.sync(ctx, k.Group()) {
		if v := l.view.Load(); newest == nil || v.used.After(newest.used) {
			newest = v
		}
	}
	if newest == nil {
		return ""
	}
	return newest.id
}

// take makes a request the latest one of its lane, which is locked, or of a new one.
func (s *Set) take(k *Key, m *matcher, best *Lane, p int, change Change) *Lane {
	var had map[wire.Hash]bool
	if best != nil && change != New {
		had = make(map[wire.Hash]bool, len(best.Hashes))
		for _, h := range best.Hashes {
			had[h] = true
		}
	}
	switch change {
	case New:
		best = s.add(k, &State{})
	case Fork:
		fork := best.copy()
		best.Unlock()
		fork.truncate(p, m)
		fork.Kept, fork.Version, fork.Money = 0, 0, nil
		best = s.add(k, fork)
	case Reset:
		best.reset(m, s.cfg.Now())
		p = 0
	case Grow, Retry, Again:
	}
	best.before = before{best.Hashes, best.digests, best.Open, slices.Clone(best.Edits)}
	best.Fresh = best.Fresh[:0]
	for i := p; i < len(m.r.Items); i++ {
		if !had[m.hash(i)] {
			best.Fresh = append(best.Fresh, i)
		}
	}
	m.commit(best)
	best.Used = s.cfg.Now()
	if best.Origin == "" || change == Reset {
		best.Origin = m.origin(k)
	}
	return best
}

// add makes a lane, locked.
func (s *Set) add(k *Key, st *State) *Lane {
	parent := st.ID
	st.ID, st.Group, st.Key = newID(), k.Group(), *k
	st.Parent = cmp.Or(parent, st.Parent)
	st.Open = false
	l := &Lane{State: st, base: &State{}}
	l.Lock()
	return s.join(st.Group, l)
}
