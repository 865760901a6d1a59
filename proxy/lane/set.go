package lane

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/proxy/wire"
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
	// Log keeps lanes; nil keeps them in memory alone.
	Log Log
	// Lanes is how many are kept in memory, 512 when 0. PerGroup is how many with one key, 64 when 0.
	Lanes, PerGroup int
	Now             func() time.Time
	// Failed gets errors of the log.
	Failed func(error)
}

// Set has the lanes of a process.
type Set struct {
	cfg  Config
	seed maphash.Seed

	mu     sync.Mutex
	groups map[string]*group
}

type group struct {
	mu    sync.Mutex // held while the lanes are loaded
	lanes []*Lane
	ready bool
	used  time.Time
}

// Lane is a [State] with what a process knows besides it.
type Lane struct {
	mu sync.Mutex

	*State

	// Messages has what plugins see of each item, nil for what was not asked for.
	Messages [][]abi.Message
	// Known is how many items of the latest request the lane had before it.
	Known int
	// Busy counts requests whose answer is under way.
	Busy int
	// Attached belongs to the user of the package.
	Attached any

	digests []uint64
	rev     uint64
	view    atomic.Pointer[view]
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
	return &view{hashes: l.Hashes, digests: l.digests, answer: l.Answer, open: l.Open, busy: l.Busy, used: l.Used}
}

// view is a lane as it was when it was last unlocked. It is read without waiting for the lane.
type view struct {
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
	return &Set{cfg: cfg, seed: maphash.MakeSeed(), groups: map[string]*group{}}
}

// group returns the lanes with a key, locked.
func (s *Set) group(ctx context.Context, name string) *group {
	s.mu.Lock()
	g := s.groups[name]
	if g == nil {
		g = &group{}
		s.groups[name] = g
		s.evict()
	}
	g.used = s.cfg.Now()
	s.mu.Unlock()
	g.mu.Lock()
	loaded := false
	defer func() {
		if !loaded { // the log panicked: others must not wait for ever
			g.mu.Unlock()
		}
	}()
	if !g.ready && s.cfg.Log != nil {
		states, revs, err := s.cfg.Log.Load(ctx, name, s.cfg.PerGroup)
		if err != nil {
			s.cfg.Failed(err)
		}
		for i, st := range states {
			l := &Lane{State: st, rev: revs[i]}
			l.view.Store(l.look())
			g.lanes = append(g.lanes, l)
		}
	}
	g.ready, loaded = true, true
	return g
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
	name := k.Group()
	m := &matcher{r: r, canon: make([]wire.Hash, len(r.Items)), known: make([]bool, len(r.Items)), digests: make([]uint64, len(r.Items))}
	for i := range r.Items {
		m.digests[i] = r.Digest(s.seed, i)
	}
	for round := 1; ; round++ {
		g := s.group(ctx, name)
		lanes := slices.Clone(g.lanes)
		g.mu.Unlock()
		best, p := m.best(lanes)
		if best != nil {
			best.Lock() // it may have moved meanwhile
			if now := m.common(best.look()); now != p && round < rounds {
				best.Unlock()
				continue
			}
		}
		change := New
		if best != nil {
			change = m.change(best.look(), p, k.Session != "")
		}
		if look {
			if change == New && best != nil {
				best.Unlock()
				best = nil
			}
			return best, change
		}
		return s.take(ctx, k, m, best, p, change), change
	}
}

// take makes a request the latest one of its lane, which is locked, or of a new one.
func (s *Set) take(ctx context.Context, k *Key, m *matcher, best *Lane, p int, change Change) *Lane {
	switch change {
	case New:
		if best != nil {
			best.Unlock()
		}
		best = s.add(ctx, k, &State{})
	case Fork:
		fork := best.copy()
		best.Unlock()
		fork.truncate(p)
		fork.Kept, fork.Money = 0, nil
		fork.Epoch++
		best = s.add(ctx, k, fork)
	case Reset:
		best.truncate(0)
		best.Messages = nil
		best.Epoch++
	case Grow, Retry, Again:
	}
	best.Known = p
	if change == New || change == Reset {
		best.Known = 0
	}
	m.commit(best)
	best.Used = s.cfg.Now()
	return best
}

// add makes a lane, locked, and forgets the one that was not used for longest where there are too many.
func (s *Set) add(ctx context.Context, k *Key, st *State) *Lane {
	parent := st.ID
	st.ID, st.Group, st.Key = fmt.Sprintf("proxy-%s", rand.Text()[:16]), k.Group(), *k
	st.Parent = cmp.Or(parent, st.Parent)
	st.Open = false
	l := &Lane{State: st}
	l.view.Store(l.look())
	l.Lock()
	g := s.group(ctx, st.Group)
	defer g.mu.Unlock()
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

// Save keeps the state of a lane, which must be locked, and adds messages to its log.
func (s *Set) Save(ctx context.Context, l *Lane, messages []abi.Message) error {
	if s.cfg.Log == nil {
		return nil
	}
	rev, err := s.cfg.Log.Save(ctx, l.State, l.rev, messages)
	if err != nil {
		s.cfg.Failed(err)
		return err
	}
	l.rev = rev
	return nil
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

// matcher compares one request with lanes.
type matcher struct {
	r       *wire.Request
	digests []uint64
	canon   []wire.Hash
	known   []bool
}

func (m *matcher) hash(i int) wire.Hash {
	if !m.known[i] {
		m.canon[i], m.known[i] = m.r.Canonical(i), true
	}
	return m.canon[i]
}

// best returns the lane that begins most like the request, of equal ones the newest.
func (m *matcher) best(lanes []*Lane) (best *Lane, p int) {
	var used time.Time
	most := -1
	for _, l := range lanes {
		v := l.view.Load()
		n := m.common(v)
		score := 2 * n
		if n == len(v.hashes) && n < len(m.r.Items) && m.continues(v) {
			score++ // of sessions that began alike it is the one with this answer
		}
		if score > most || score == most && v.used.After(used) {
			best, p, used, most = l, n, v.used, score
		}
	}
	return best, p
}

// common is how many items a request and a lane begin with in common.
func (m *matcher) common(l *view) int {
	n := min(len(l.hashes), len(m.r.Items))
	for i := range n {
		if i < len(l.digests) && l.digests[i] == m.digests[i] {
			if !m.known[i] {
				m.canon[i], m.known[i] = l.hashes[i], true
			}
			continue
		}
		if m.hash(i) != l.hashes[i] {
			return i
		}
	}
	return n
}

func (m *matcher) change(l *view, p int, named bool) Change {
	n, before := len(m.r.Items), len(l.hashes)
	if !named && !m.answered(p) && (p != before || !m.continues(l)) {
		if p == before && n == before && p > 0 && l.open && l.busy == 0 {
			return Retry // of the first request
		}
		return New
	}
	switch {
	case p == before && n > before:
		return Grow
	case p == before && n == before && l.open:
		return Retry
	case p == before && n == before:
		return Again
	case p == 0 || n < before/2 && !m.answered(p):
		return Reset
	}
	return Fork
}

// answerItems is how many items one answer may be in a conversation.
const answerItems = 32

// continues reports whether the request continues from the answer that the lane had.
func (m *matcher) continues(l *view) bool {
	from := len(l.hashes)
	for i := from; i < min(from+answerItems, len(m.r.Items)); i++ {
		if m.r.Items[i].Role == wire.Assistant && slices.Contains(l.answer, m.r.Key(i)) {
			return true
		}
	}
	return false
}

// answered reports whether the first n items have an answer of the model.
func (m *matcher) answered(n int) bool {
	for i := range min(max(n, 0), len(m.r.Items)) {
		if m.r.Items[i].Role == wire.Assistant {
			return true
		}
	}
	return false
}

// commit makes the request the latest one of the lane.
func (m *matcher) commit(l *Lane) {
	for i := range m.r.Items {
		m.hash(i)
	}
	l.Hashes, l.digests = m.canon, m.digests
	if len(l.Messages) > len(m.r.Items) {
		l.Messages = l.Messages[:len(m.r.Items)]
	}
}
