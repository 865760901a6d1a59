package mailbox

import "github.com/mortise-dev/mortise/internal/queue"

// Records of the store. Times have milliseconds, in UTC; zero times and empty strings mean that there is none.
type (
	// Thread is the record of a thread.
	Thread = queue.Thread
	// Dispatch is one delivery of a request to a run.
	Dispatch = queue.Dispatch
	// Run is the record of a run, which may take several dispatches.
	Run = queue.Run
	// RunRef is what a [Thread] has of a run.
	RunRef = queue.RunRef
	// Totals are what a run has used.
	Totals = queue.Totals
	// Ticket is a call that waits for a decision, as lists have it.
	Ticket = queue.Ticket
	// Message is an entry of a thread's log.
	Message = queue.Message
	// Status is where a dispatch stands.
	Status = queue.Status
	// RunStatus is where a run stands.
	RunStatus = queue.RunStatus
)

// What executions write, and what is asked of a mailbox.
type (
	// Commit is what an execution writes to its thread.
	Commit = queue.Commit
	// Result is what a run came to in an execution.
	Result = queue.Result
	// Interruption is what an interrupt came to.
	Interruption = queue.Interruption
	// Description is what front ends call a thread.
	Description = queue.Description
	// DispatchQuery selects dispatches.
	DispatchQuery = queue.DispatchQuery
	// RunQuery selects runs.
	RunQuery = queue.RunQuery
	// ThreadQuery selects threads.
	ThreadQuery = queue.ThreadQuery
	// Operation is a transition or a read that observers receive.
	Operation = queue.Operation
)

// Statuses of a dispatch. The last four are terminal.
const (
	Queued     = queue.Queued
	Claimed    = queue.Claimed
	Acked      = queue.Acked
	Cancelled  = queue.Cancelled
	Superseded = queue.Superseded
	DeadLetter = queue.DeadLetter
)

// Statuses of a run. Done is terminal.
const (
	RunCreated = queue.RunCreated
	RunRunning = queue.RunRunning
	RunWaiting = queue.RunWaiting
	RunDone    = queue.RunDone
)

// Statuses lists those of a dispatch, in the order of its life.
func Statuses() []Status { return queue.Statuses() }

// Terminations of runs that the mailbox itself ends.
const (
	TerminationCancelled = queue.TerminationCancelled
	TerminationError     = queue.TerminationError
)
