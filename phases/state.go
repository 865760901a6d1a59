package phases

import (
	"context"
	"sync"

	"github.com/mortise-dev/mortise/abi"
)

// State holds the values that plugins keep for one run, by full key
// ("<plugin>/<key>"). [Runtime.NewState] makes one. It is safe for concurrent use;
// phases fired on one State take turns, in the order in which they came.
//
// Values are never changed in place: a commit replaces those that it touches and
// copies nothing else. So a value that was read stays as it is.
type State struct {
	turn chan struct{}

	mu       sync.RWMutex
	values   map[string]entry
	revision uint64

	// seen belongs to whoever has the turn.
	seen tracker
}

// entry is a value. Exported ones outlive the run.
type entry struct {
	value    any
	exported bool
	// raw values came from outside in a form that plugins may not see. They are
	// only kept and written back.
	raw bool
}

// NewState starts the state of a run from the thread-scoped values of the
// previous one, as [State.Export] returned them; nil if there are none. Keys
// that no plugin declares, and values of types that the contract does not know,
// are hidden and kept. A key that is declared with run scope starts anew.
func (r *Runtime) NewState(thread map[string]any) *State {
	s := &State{
		turn:   make(chan struct{}, 1),
		values: make(map[string]entry, len(thread)),
	}
	for full, value := range thread {
		if k := r.keys[full]; k != nil && !k.thread {
			continue
		}
		m := meter{left: maxImportBytes}
		kept, err := m.clone(value)
		if err != nil {
			s.values[full] = entry{value: value, exported: true, raw: true}
			continue
		}
		s.values[full] = entry{value: kept, exported: true}
	}
	return s
}

// Read returns the value of a full key. The value is shared; do not change it.
func (s *State) Read(key string) (any, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e, ok := s.values[key]
	return e.value, ok
}

// Revision counts the commits: each phase that changed the state is one.
func (s *State) Revision() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.revision
}

// Export returns what outlives the run: the thread-scoped values and those of
// unknown keys. The map is the caller's, the values are shared.
func (s *State) Export() map[string]any {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make(map[string]any, len(s.values))
	for full, e := range s.values {
		if e.exported {
			out[full] = e.value
		}
	}
	return out
}

// load returns the value that a plugin may see and compute with.
func (s *State) load(k *key) (any, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e, ok := s.values[k.full]
	if e.raw {
		return nil, false
	}
	return e.value, ok
}

// commit replaces the touched values in one revision.
func (s *State) commit(touched map[*key]any) {
	if len(touched) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, value := range touched {
		s.values[k.full] = entry{value: value, exported: k.thread}
	}
	s.revision++
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

// tracker knows which messages a plugin was sent as a delta. Messages are
// numbered in the order in which they are first met, so that one number per
// plugin is enough, however the list is changed by compactions.
type tracker struct {
	numbers map[string]uint64
	last    uint64
	// lastID stood at lastIndex when the list was numbered.
	lastID    string
	lastIndex int
	sent      map[string]uint64
}

// number numbers the messages that are new.
func (t *tracker) number(messages []abi.Message) {
	if t.numbers == nil {
		t.numbers, t.sent = make(map[string]uint64, len(messages)), make(map[string]uint64)
	}
	from := 0
	if t.last > 0 && t.lastIndex < len(messages) && messages[t.lastIndex].ID == t.lastID {
		// The list only grew.
		from = t.lastIndex + 1
	}
	for i := from; i < len(messages); i++ {
		if id := messages[i].ID; id != "" && t.numbers[id] == 0 {
			t.last++
			t.numbers[id] = t.last
		}
	}
	if n := len(messages); n > 0 {
		t.lastID, t.lastIndex = messages[n-1].ID, n-1
	}
}

// delta returns where the messages begin that stand after the newest one that
// the plugin was sent. The mark is to be given to advance when the hook has
// succeeded.
func (t *tracker) delta(plugin string, messages []abi.Message) (from int, mark uint64) {
	t.number(messages)
	sent := t.sent[plugin]
	for from = len(messages); from > 0; from-- {
		// A message without an id has no number and passes for new.
		if n := t.numbers[messages[from-1].ID]; n != 0 && n <= sent {
			break
		}
	}
	return from, t.last
}

func (t *tracker) advance(plugin string, mark uint64) {
	t.sent[plugin] = max(t.sent[plugin], mark)
}
