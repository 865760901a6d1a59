package lane

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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
	// slow is when the store was not there in time.
	slow atomic.Int64

	mu     sync.Mutex
	groups map[string]*group
	stored map[string]Stored // where there is no store
}

type group struct {
	mu    sync.Mutex
	lanes []*Lane
	used  time.Time
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
	s := &Set{cfg: cfg, groups: map[string]*group{}, stored: map[string]Stored{}}
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
