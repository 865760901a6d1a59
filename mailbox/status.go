package mailbox

import "slices"

// Status is where a dispatch stands.
type Status string

// Statuses of a dispatch. The last four are terminal.
const (
	Queued     Status = "queued"
	Claimed    Status = "claimed"
	Acked      Status = "acked"
	Cancelled  Status = "cancelled"
	Superseded Status = "superseded"
	DeadLetter Status = "dead_letter"
)

// Statuses lists them all, in the order of a dispatch's life.
func Statuses() []Status {
	return []Status{Queued, Claimed, Acked, Cancelled, Superseded, DeadLetter}
}

// Terminal reports whether nothing comes after s. Only a dead letter can be replayed.
func (s Status) Terminal() bool { return s != Queued && s != Claimed }

// Valid reports whether s is one of them.
func (s Status) Valid() bool { return slices.Contains(Statuses(), s) }

// RunStatus is where a run stands, which may take several dispatches.
type RunStatus string

// Statuses of a run. Done is terminal.
const (
	RunCreated RunStatus = "created"
	RunRunning RunStatus = "running"
	RunWaiting RunStatus = "waiting"
	RunDone    RunStatus = "done"
)

// Terminations of runs that the queue itself ends.
const (
	TerminationCancelled = "cancelled"
	TerminationError     = "error"
)

// How a dispatch lost its latest claim.
const (
	endSettled = "settled"
	endExpired = "expired"
	// endReleased is a claim that its holder gave back without a result.
	endReleased = "released"
)
