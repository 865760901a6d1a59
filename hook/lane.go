package hook

import (
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/ledger"
	"github.com/mortise-dev/mortise/phases"
)

// lane is a session of an agent, or one of its sub-agents. The holder of turn owns the rest.
type lane struct {
	key   string
	turn  chan struct{}
	users int // guarded by Engine.mu

	program *Program
	st      *phases.State
	run     abi.RunIdentity
	saved   Saved
	log     *ledger.Ledger    // nil where the agent keeps one
	watched map[string]source // names of before a compaction, and where the agent could have them from
	closed  bool
	dirty   bool
	written string
}

// laneKey names a lane. Its parts cannot be confused with each other.
func laneKey(e *Event) string {
	return fmt.Sprintf("%s:%q:%q", e.Dialect.Name, e.Session, e.Lane)
}

// newRun starts a run of the lane: what plugins keep for a run is gone.
func (l *lane) newRun(id string) {
	l.st = l.program.Runtime.NewState(l.st.Export())
	l.saved.RunID, l.saved.Step, l.saved.Stops, l.saved.Ended = id, 0, 0, false
	l.run.RunID, l.dirty = id, true
}

// mark changes when the lane does.
func (l *lane) mark() string { return fmt.Sprint(l.saved.RunID, l.saved.Step, l.st.Revision()) }

func (l *lane) changed() bool {
	changed := l.dirty || l.mark() != l.written
	l.dirty = false
	return changed
}
