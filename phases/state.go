package phases

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mortise-dev/mortise/phases/state"
)

// State holds the values that plugins keep for one run, by full key
// ("<plugin>/<key>"). [Runtime.NewState] makes one. It is safe for concurrent use;
// phases fired on one State take turns, in the order in which they came. Others may
// commit to its store at any time, see [Runtime.Submit].
type State struct {
	store *state.Store
	turn  chan struct{}
	// ids numbers actions and effects.
	ids     atomic.Int64
	letters sync.Mutex

	// seen belongs to the goroutine that has the turn.
	seen tracker
}

// NewState starts the state of a run from the thread-scoped values of the
// previous one, as [State.Export] returned them; nil if there are none. Keys
// that no plugin declares, and values of types that the contract does not know,
// are hidden and kept. A key that is declared with run scope starts anew.
func (r *Runtime) NewState(thread map[string]any) *State {
	s := &State{store: state.New(), turn: make(chan struct{}, 1)}
	if err := r.declare(s.store.Install); err != nil {
		panic(err) // New checked the keys, and the store is empty.
	}
	s.store.RestoreThread(thread)
	s.number()
	return s
}

// Resume starts the state of a run that continues, from what its store exported
// elsewhere: with the values of run scope and the actions that wait. Values that no key
// can decode are hidden and kept; with strict they are an error.
func (r *Runtime) Resume(img state.Image, strict bool) (*State, error) {
	s := r.NewState(nil)
	if err := s.store.Restore(img, strict); err != nil {
		return nil, fmt.Errorf("phases: resume: %w", err)
	}
	s.number()
	return s, nil
}

// Adopt makes the state of another runtime one of this one, as when a run is handed
// to another agent. Values stay, also those of plugins that are not here.
func (r *Runtime) Adopt(s *State) error {
	if err := r.declare(s.store.Redeclare); err != nil {
		return fmt.Errorf("phases: adopt: %w", err)
	}
	return nil
}

// declare gives the keys of all plugins, active or not, and the runtime's own to a
// store.
func (r *Runtime) declare(install func(owner string, keys ...*state.Key) error) error {
	if err := install(runtimeOwner, r.pending, r.dead); err != nil {
		return err
	}
	for _, p := range r.plugins {
		keys := make([]*state.Key, len(p.list))
		for i, k := range p.list {
			keys[i] = k.Key
		}
		if err := install(p.name, keys...); err != nil {
			return err
		}
	}
	return nil
}

// number makes the next id larger than any that is in use.
func (s *State) number() {
	now, last := s.store.Snapshot(), int64(0)
	for _, a := range pendingOf(now) {
		last = max(last, a.ID)
	}
	for _, l := range lettersOf(now) {
		last = max(last, l.ID)
	}
	s.ids.Store(last)
}

// Store returns the store: for snapshots, for watching commits, and for exporting
// everything. A plugin whose keys are uninstalled there can no longer update them.
func (s *State) Store() *state.Store { return s.store }

// Read returns the value of a full key. The value is shared; do not change it.
func (s *State) Read(key string) (any, bool) { return s.store.Snapshot().Read(key) }

// Revision counts the commits: each phase that changed the state is one.
func (s *State) Revision() uint64 { return s.store.Snapshot().Revision() }

// Export returns what outlives the run: the thread-scoped values and those of
// unknown keys. The map is the caller's, the values are shared.
func (s *State) Export() map[string]any { return s.store.ExportThread() }

// Kept returns the value of a full key as Export would: of thread scope, or of a key
// that no plugin declares. The value is shared; do not change it.
func (s *State) Kept(key string) (any, bool) { return s.store.Thread(key) }

// Watch calls fn after each commit with the names of the keys that it touched,
// sorted, until stop is called. Calls come one at a time, in the order of the revisions;
// fn must not fire phases. It fails when there are too many watchers.
func (s *State) Watch(fn func(keys []string)) (stop func(), err error) {
	return s.store.Watch(func(c state.Change) { fn(c.Keys) })
}

func (s *State) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *State) release() { <-s.turn }
