package compaction

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// ErrConflict is a state that another process has changed since it was read.
var ErrConflict = errors.New("the state was changed meanwhile")

// Store keeps what a thread's compactions must not forget when the process ends,
// and what happened to them. It must be safe for concurrent use. A step of a run
// waits for it, and a view has no context to end that wait: each call bounds its own
// time, to seconds. An error of Swap that is not [ErrConflict] may hide a write that
// landed: the next Swap finds out.
type Store interface {
	// Load returns a thread's state and its revision: nothing and 0 for a new one.
	Load(thread string) (State, uint64, error)
	// Swap replaces the state if its revision is still rev, and returns the new one.
	// It fails with [ErrConflict] otherwise. What it is given must not be changed.
	Swap(thread string, rev uint64, s State) (uint64, error)
	// Record appends an event to what is known of its thread.
	Record(e Event) error
}

// State is what is durable of a thread's compactions.
type State struct {
	// InFlight is the compaction under way, nil for none.
	InFlight *InFlight `json:"in_flight,omitempty"`
	// Markers are the compactions that can be undone, oldest first, and one more to
	// go back to when Forgot reports that there were others before.
	Markers []Marker `json:"markers,omitempty"`
	Forgot  bool     `json:"forgot,omitempty"`
	// Dropped counts messages of the log whose content retention has dropped, see [State.Drop].
	Dropped int `json:"dropped,omitempty"`
	// Undone is there after an undo until the next start.
	Undone *Undone `json:"undone,omitempty"`
	// Total counts all compactions that were swapped in.
	Total int `json:"total"`
	// Attempts counts starts, Failures failures, each since the last success. Broken
	// counts failures of the summarizer itself, in the version BrokenVersion, see
	// [Versioned]; OpenUntil is until when the deterministic one writes in its place.
	Attempts      int       `json:"attempts,omitempty"`
	Failures      int       `json:"failures,omitempty"`
	Broken        int       `json:"broken,omitempty"`
	BrokenVersion string    `json:"broken_version,omitempty"`
	OpenUntil     time.Time `json:"open_until,omitzero"`
	LastStart     time.Time `json:"last_start,omitzero"`
	LastFail      time.Time `json:"last_fail,omitzero"`
	// NotBefore is when the admission policy of that version wants to be asked again.
	NotBefore        time.Time `json:"not_before,omitzero"`
	NotBeforeVersion string    `json:"not_before_version,omitempty"`
}

// Undone is a compaction that was taken back. None starts by itself before the view has grown
// beyond what was undone, see [Compactor.Undo].
type Undone struct {
	// ID is the marker's. ViewTokens is the size of the view that was there again, 0 as long as
	// no compactor has seen it.
	ID         string `json:"id"`
	ViewTokens int64  `json:"view_tokens,omitempty"`
}

// InFlight is the reservation of a thread's one place for a compaction.
type InFlight struct {
	// ID names the reservation. Its background task and its marker have the same.
	ID string `json:"task_id"`
	// Owner is the process that reserved, Attempt which start in a row it was.
	Owner   string `json:"owner"`
	Attempt int    `json:"attempt"`
	// BoundaryID is the last message of the range.
	BoundaryID string `json:"boundary_message_id"`
	// StartedMS and DeadlineMS are in milliseconds since 1970.
	StartedMS  int64 `json:"started_at_ms"`
	DeadlineMS int64 `json:"deadline_ms"`
	// Range is what is summarized, Policy who writes.
	Range  Range  `json:"range"`
	Policy string `json:"policy,omitempty"`
	// Marker was the newest one at the start. Continues means that the summary
	// before the range went into this one.
	Marker    string `json:"marker,omitempty"`
	Continues bool   `json:"continues,omitempty"`
	// Before is the size of the view at the start, in tokens.
	Before int64 `json:"before"`
	// Result is there when the summarizer has answered.
	Result *Result `json:"result,omitempty"`
}

// Result is what a summarizer has answered, scored.
type Result struct {
	Summary string `json:"summary"`
	// Masks are what it masks in place of a summary.
	Masks []abi.Mask `json:"masks,omitempty"`
	// FromID and ToID are what the summarizer claims to cover.
	FromID  string  `json:"from_id,omitempty"`
	ToID    string  `json:"to_id,omitempty"`
	Quality Quality `json:"quality"`
	// Policy is the one that wrote, if it is not the one that was asked; Note is what
	// the summarizer says about that.
	Policy string `json:"policy,omitempty"`
	Note   string `json:"note,omitempty"`
}

func (s *State) clone() State {
	out := *s
	out.Markers = slices.Clone(s.Markers)
	if s.InFlight != nil {
		f := *s.InFlight
		out.InFlight = &f
	}
	if s.Undone != nil {
		u := *s.Undone
		out.Undone = &u
	}
	return out
}

// maxEvents is how many events of a thread [Memory] remembers.
const maxEvents = 1000

// Memory is a [Store] that lasts as long as the process.
type Memory struct {
	mu      sync.Mutex
	threads map[string]*remembered
}

type remembered struct {
	state  State
	ledger StoredLedger
	rev    uint64
	events []Event
}

// NewMemory returns an empty one.
func NewMemory() *Memory { return &Memory{threads: make(map[string]*remembered)} }

func (m *Memory) thread(id string) *remembered {
	r := m.threads[id]
	if r == nil {
		r = &remembered{}
		m.threads[id] = r
	}
	return r
}

// Load implements [Store].
func (m *Memory) Load(thread string) (State, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.threads[thread]
	if r == nil {
		return State{}, 0, nil
	}
	return r.state.clone(), r.rev, nil
}

// Swap implements [Store].
func (m *Memory) Swap(thread string, rev uint64, s State) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.thread(thread)
	if r.rev != rev {
		return 0, ErrConflict
	}
	r.state, r.rev = s.clone(), rev+1
	return r.rev, nil
}

// LoadLedger implements [LedgerStore].
func (m *Memory) LoadLedger(thread string) (StoredLedger, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.threads[thread]; r != nil {
		return r.ledger, nil
	}
	return StoredLedger{}, nil
}

// SaveLedger implements [LedgerStore].
func (m *Memory) SaveLedger(thread string, l StoredLedger) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.thread(thread).ledger = l
	return nil
}

// Record implements [Store]. The oldest events are forgotten.
func (m *Memory) Record(e Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.thread(e.Thread)
	if len(r.events) >= maxEvents {
		r.events = slices.Delete(r.events, 0, maxEvents/4)
	}
	r.events = append(r.events, e)
	return nil
}

// Events returns what was recorded of a thread, oldest first.
func (m *Memory) Events(thread string) []Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.threads[thread]; r != nil {
		return slices.Clone(r.events)
	}
	return nil
}
