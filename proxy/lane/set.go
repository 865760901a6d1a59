package lane

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/thread"
)

// Change is how a request relates to its lane.
type Change string

// Changes.
const (
	New   Change = "new"
	Grow  Change = "grow"
	Retry Change = "retry" // the same again, and no whole answer was delivered
	Again Change = "again" // the same again behind a whole answer
	Fork  Change = "fork"  // an ancestor is equal
	Reset Change = "reset" // the client compacted
)

// Config makes a [Set].
type Config struct {
	// Store keeps lanes, as threads; nil keeps them in memory alone.
	Store store.Store
	// Listed lists threads elsewhere too, as in a mailbox; nil does not.
	Listed Listing
	// Lanes is how many are kept in memory, 512 when 0. PerGroup is how many with one key, 64 when 0.
	Lanes, PerGroup int
	Now             func() time.Time
	// Failed gets errors of the log.
	Failed func(error)
}

// Set has the lanes of a process.
type Set struct {
	cfg Config
	log *log // nil without a store

	mu     sync.Mutex
	groups map[string]*group
}

type group struct {
	mu    sync.Mutex
	lanes []*Lane
	used  time.Time
}

// Lane is a [State] with what a process knows besides it.
type Lane struct {
	mu sync.Mutex

	*State

	// Messages has what plugins see of each item, nil for what was not asked for.
	Messages [][]abi.Message
	// Fresh are the items of the latest request that the lane did not have before.
	Fresh []int
	// Busy counts requests whose answer is under way.
	Busy int
	// Marker and Events are about compactions, and are saved with the lane.
	Marker *compaction.Marker
	Events []compaction.Event
	// Moved counts changes of the lane by others: another process, or an operator.
	Moved int
	// Attached belongs to the user of the package.
	Attached any

	digests []uint64
	// base is the state as it is in the store.
	base *State
	view atomic.Pointer[view]
}

// Lock holds the lane for one request.
func (l *Lane) Lock() { l.mu.Lock() }

// Unlock gives it back, and shows other requests what it is now.
func (l *Lane) Unlock() {
	l.view.Store(l.look())
	l.mu.Unlock()
}

// look is what other requests are compared with.
func (l *Lane) look() *view {
	return &view{
		id: l.ID, origin: l.Origin, version: l.Version, hashes: l.Hashes, digests: l.digests, answer: l.Answer, open: l.Open, busy: l.Busy, used: l.Used,
	}
}

// view is a lane as it was when it was last unlocked. It is read without waiting for the lane.
type view struct {
	id      string
	origin  string
	version uint64
	hashes  []wire.Hash
	digests []uint64
	answer  []string
	open    bool
	busy    int
	used    time.Time
}

// NewSet returns a set.
func NewSet(cfg Config) *Set {
	cfg.Lanes, cfg.PerGroup = cmp.Or(cfg.Lanes, 512), cmp.Or(cfg.PerGroup, 64)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Failed == nil {
		cfg.Failed = func(error) {}
	}
	s := &Set{cfg: cfg, groups: map[string]*group{}}
	if cfg.Store != nil {
		s.log = &log{cfg.Store, thread.On(cfg.Store), cfg.Listed}
	}
	return s
}

// group returns the lanes with a key.
func (s *Set) group(name string) *group {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[name]
	if g == nil {
		g = &group{}
		s.groups[name] = g
		s.evict()
	}
	g.used = s.cfg.Now()
	return g
}

// sync returns the lanes of a group, as the store has them.
func (s *Set) sync(ctx context.Context, name string) []*Lane {
	g := s.group(name)
	var have []listed
	var err error
	if s.log != nil {
		if have, err = s.log.list(ctx, name, s.cfg.PerGroup); err != nil {
			s.cfg.Failed(err)
		}
	}
	g.mu.Lock()
	lanes := slices.Clone(g.lanes)
	g.mu.Unlock()
	if s.log == nil || err != nil {
		return lanes
	}
	for _, h := range have {
		i := slices.IndexFunc(lanes, func(l *Lane) bool { return l.view.Load().id == h.id })
		if i >= 0 && lanes[i].view.Load().version >= h.version {
			continue
		}
		theirs, err := s.log.read(ctx, h.id)
		switch {
		case err != nil:
			s.cfg.Failed(err)
		case theirs == nil:
		case i >= 0:
			lanes[i].Lock()
			if theirs.Version > lanes[i].Version && (lanes[i].Busy == 0 || !diverged(lanes[i].Hashes, theirs.Hashes)) {
				lanes[i].absorb(theirs)
			}
			lanes[i].Unlock()
		default:
			s.join(name, &Lane{State: theirs, base: theirs.copy()})
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(have) < s.cfg.PerGroup {
		g.lanes = slices.DeleteFunc(g.lanes, func(l *Lane) bool {
			v := l.view.Load() // what was deleted in the store is forgotten here
			return v.version > 0 && v.busy == 0 && !slices.ContainsFunc(have, func(h listed) bool { return h.id == v.id })
		})
	}
	return slices.Clone(g.lanes)
}

// evict forgets the groups that were not used for longest. Their lanes are loaded again from the log.
func (s *Set) evict() {
	if len(s.groups) <= s.cfg.Lanes {
		return
	}
	type named struct {
		name string
		used time.Time
	}
	var all []named
	for name, g := range s.groups {
		all = append(all, named{name, g.used})
	}
	slices.SortFunc(all, func(a, b named) int { return a.used.Compare(b.used) })
	for _, n := range all[:len(all)/4] {
		if !n.used.IsZero() {
			delete(s.groups, n.name)
		}
	}
}

// rounds is how often a lane is looked for that changes meanwhile.
const rounds = 4

// Find returns the lane of a request, locked, and how the request relates to it. Unless look is set the lane now ends
// with the request.
func (s *Set) Find(ctx context.Context, k *Key, r *wire.Request, look bool) (*Lane, Change) {
	ctx, cancel := bounded(ctx)
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
	ctx, cancel := bounded(ctx)
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
	var before map[wire.Hash]bool
	if best != nil && change != New {
		before = make(map[wire.Hash]bool, len(best.Hashes))
		for _, h := range best.Hashes {
			before[h] = true
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
	best.Fresh = best.Fresh[:0]
	for i := p; i < len(m.r.Items); i++ {
		if !before[m.hash(i)] {
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

// reset begins an epoch: the client has compacted the conversation. That is a marker of the thread, as a compaction of the proxy is.
func (l *Lane) reset(m *matcher, now time.Time) {
	if first, last := l.Span(0, len(l.Messages)); l.Kept > 0 && first != "" {
		l.Marker = &compaction.Marker{
			ID: rand.Text(), ThreadID: l.ID, FromID: first, ToID: last, At: now, Policy: clientPolicy, PreTokens: l.Usage.Prompt(),
			Summary: "The client compacted the conversation by itself. Its summary is in the messages that follow.",
		}
		l.Events = append(l.Events, compaction.Event{
			Kind: compaction.EventSwapped, Thread: l.ID, At: now, AttemptID: l.Marker.ID, Policy: clientPolicy, FromID: first, ToID: last,
			PreTokens: l.Marker.PreTokens, Reason: "the client compacted by itself",
		})
	}
	l.truncate(0, m)
	l.Messages, l.Kept = nil, 0
	l.Epoch++
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

func newID() string { return "proxy-" + rand.Text()[:16] }

// join adds a lane to its group, and forgets the one that was not used for longest where there are too many.
func (s *Set) join(name string, l *Lane) *Lane {
	l.view.Store(l.look())
	g := s.group(name)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, have := range g.lanes {
		if have.view.Load().id == l.ID { // two requests have read it at once
			return have
		}
	}
	if len(g.lanes) >= s.cfg.PerGroup {
		oldest := 0
		for i := range g.lanes {
			if g.lanes[i].view.Load().used.Before(g.lanes[oldest].view.Load().used) {
				oldest = i
			}
		}
		g.lanes = slices.Delete(g.lanes, oldest, oldest+1)
	}
	g.lanes = append(g.lanes, l)
	return l
}

// All calls visit for each lane in memory, unlocked.
func (s *Set) All(visit func(*Lane)) {
	s.mu.Lock()
	groups := make([]*group, 0, len(s.groups))
	for _, g := range s.groups {
		groups = append(groups, g)
	}
	s.mu.Unlock()
	for _, g := range groups {
		g.mu.Lock()
		lanes := slices.Clone(g.lanes)
		g.mu.Unlock()
		for _, l := range lanes {
			visit(l)
		}
	}
}
