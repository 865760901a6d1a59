package compaction

import (
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

// ReasonUndone refuses a compaction because one was taken back and the view has hardly grown since.
const ReasonUndone = "undone"

// Undo takes the newest compaction back: the view is what it was before. It
// reports false when there is none, when another process did it first, or when the
// store does not take it, which an event tells.
//
// After it no compaction starts by itself before the view has grown by a quarter of
// Policy.ThresholdTokens, or fills the window, so that the same range is not compacted
// again at once. [Compactor.Request] does not wait for that.
func (c *Compactor) Undo(id string) bool {
	t := c.use(id)
	defer t.mu.Unlock()
	if !t.loaded || !t.state.undoable() {
		return false
	}
	m := *t.latest()
	latest := func(s *State) bool {
		return s.undoable() && s.Markers[len(s.Markers)-1].ID == m.ID
	}
	err := c.commit(t, latest, func(s *State) { s.Undo() })
	if errors.Is(err, ErrConflict) && !latest(&t.state) {
		return false // another process has taken it back, and sent the event
	}
	e := Event{
		Kind: EventUndone, AttemptID: m.ID, FromID: m.FromID, ToID: m.ToID, Policy: m.Policy, PreTokens: m.PostTokens, PostTokens: m.PreTokens,
	}
	if err != nil {
		e.Kind, e.Reason = EventFailed, fmt.Sprintf("the undo could not be stored: %v", err)
	}
	c.observe(t, e)
	return err == nil
}

// Undo takes the newest marker back, if there is one that may go, and returns it.
func (s *State) Undo() (Marker, bool) {
	if !s.undoable() {
		return Marker{}, false
	}
	m := s.Markers[len(s.Markers)-1]
	s.Markers = s.Markers[:len(s.Markers)-1]
	s.Undone = &Undone{ID: m.ID}
	return m, true
}

// undoable is false for the oldest marker that is kept if it may stand on one that
// was forgotten.
func (s *State) undoable() bool {
	return len(s.Markers) > 1 || len(s.Markers) == 1 && !s.Forgot
}

// undone reports whether the view is still about what an undo has restored. The size at the first
// call after the undo is kept, for the next process too.
func (c *Compactor) undone(t *thread, tokens int64) bool {
	u := t.state.Undone
	if u == nil || t.requested {
		return false
	}
	p := c.conf().Policy
	if u.ViewTokens == 0 {
		same := func(s *State) bool { return s.Undone != nil && s.Undone.ID == u.ID }
		if err := c.commit(t, same, func(s *State) { s.Undone.ViewTokens = tokens }); err != nil {
			c.conf().Logger.Warn("the size of a view after an undo could not be stored", "thread_id", t.id, "error", err)
			return true // and stored at the next step
		}
		u = t.state.Undone
	}
	until := min(u.ViewTokens+p.ThresholdTokens/4, p.WindowTokens-p.ReserveTokens)
	if tokens >= until {
		return false
	}
	before := uint64(max(0, tokens))
	c.tell(t, nil, &AdmissionDecision{Schema: AdmissionSchema, Reason: ReasonUndone, TokensBefore: &before, Signals: signalsJSON(abi.Signals{})},
		fmt.Sprintf("the compaction %s was undone; the next one starts at %d tokens, or on request", u.ID, until))
	return true
}
