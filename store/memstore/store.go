package memstore

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"github.com/mortise-dev/mortise/mailbox"
)

// Store is a mailbox.Store with mailbox.Live, mailbox.Signals and mailbox.EventLog. Make one with [New].
type Store struct {
	mu         sync.Mutex
	threads    map[string]*thread
	names      *btree.BTreeG[string]
	dispatches map[string]mailbox.Dispatch
	runs       map[string]mailbox.Run
	// byRank and byTime hold the threads that are due some time, history holds all
	// dispatches in the order of their last change.
	byRank, byTime *btree.BTreeG[due]
	history        *btree.BTreeG[entry]
	counts         mailbox.Counts
	claims         map[string]int

	live   lines
	bells  bells
	events events
}

var (
	_ mailbox.Store   = (*Store)(nil)
	_ mailbox.Live    = (*Store)(nil)
	_ mailbox.Signals = (*Store)(nil)
	_ mailbox.Clock   = (*Store)(nil)
)

// New returns an empty store.
func New() *Store {
	return &Store{
		threads: map[string]*thread{}, names: sorted(func(a, b string) bool { return a < b }),
		dispatches: map[string]mailbox.Dispatch{}, runs: map[string]mailbox.Run{},
		byRank: sorted(due.rankBefore), byTime: sorted(due.timeBefore), history: sorted(entry.changedBefore),
		counts: mailbox.Counts{Status: map[mailbox.Status]int{}}, claims: map[string]int{},
		live: lines{open: map[mailbox.Target]*line{}}, bells: newBells(), events: newEvents(),
	}
}

// Update implements mailbox.Store.
func (s *Store) Update(ctx context.Context, id string, need mailbox.Need, decide func(mailbox.State) (mailbox.Change, error)) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	change, err := decide(s.state(id, need))
	if err != nil || change.Head == nil {
		return err
	}
	return s.apply(id, change)
}

// Load implements mailbox.Store.
func (s *Store) Load(ctx context.Context, id string, need mailbox.Need) (mailbox.State, error) {
	if err := context.Cause(ctx); err != nil {
		return mailbox.State{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state(id, need), nil
}

// Time implements mailbox.Clock: there is one process, and its clock.
func (*Store) Time(context.Context) (time.Time, error) { return time.Now(), nil }

// Find implements mailbox.Store.
func (s *Store) Find(ctx context.Context, kind mailbox.Kind, id string) (thread string, found bool, err error) {
	if err := context.Cause(ctx); err != nil {
		return "", false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind == mailbox.KindRun {
		r, ok := s.runs[id]
		return r.Thread, ok, nil
	}
	d, ok := s.dispatches[id]
	return d.Thread, ok, nil
}

// Count implements mailbox.Reader.
func (s *Store) Count(ctx context.Context) (mailbox.Counts, error) {
	if err := context.Cause(ctx); err != nil {
		return mailbox.Counts{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return mailbox.Counts{Status: maps.Clone(s.counts.Status)}, nil
}

// Claims implements mailbox.Reader.
func (s *Store) Claims(ctx context.Context) (map[string]int, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.claims), nil
}

// Purge implements mailbox.Store.
func (s *Store) Purge(ctx context.Context, q mailbox.PurgeQuery) (int, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var old []entry
	s.history.Scan(func(e entry) bool {
		d := s.dispatches[e.id]
		if !d.UpdatedAt.Before(q.Before) || len(old) >= q.Limit {
			return false
		}
		if d.Status.Terminal() && slices.Contains(q.Statuses, d.Status) {
			old = append(old, e)
		}
		return true
	})
	for _, e := range old {
		s.counts.Status[s.dispatches[e.id].Status]--
		s.history.Delete(e)
		s.threads[s.dispatches[e.id].Thread].all.Delete(e)
		delete(s.dispatches, e.id)
		s.events.forget(e.id)
	}
	return len(old), nil
}
