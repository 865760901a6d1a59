package mailbox

import "time"

// Priorities: lower is earlier.
const (
	PriorityHighest uint8 = 0
	PriorityDefault uint8 = 128
	PriorityLowest  uint8 = 255
)

// Dispatch is one delivery of a request to a run. Times have milliseconds; zero
// times and empty strings mean that there is none. All fields but Request and Seq
// are small.
type Dispatch struct {
	// ID is unique in the store, Thread and RunID say what it is for.
	ID     string
	Thread string
	RunID  string
	// Seq orders the dispatches of a thread: a later one has a greater one.
	Seq      uint64
	Priority uint8
	// Epoch is that of the thread at the time. A dispatch whose epoch is below the
	// thread's is stale. One that an interrupt superseded while it was queued has the epoch that the interrupt began.
	Epoch uint64
	// Dedupe is a key that only one dispatch of the thread may have that is not terminal.
	Dedupe string
	// Origin is who asked: user, internal, or a word of the embedder.
	Origin string
	Status Status

	AvailableAt time.Time
	Attempts    int
	MaxAttempts int
	LastError   string
	// Holding says that it failed and keeps its place: what is behind it waits.
	Holding bool

	// Token, Fence and Owner are those of the latest claim, and End is how the dispatch
	// lost it; it is empty while it has it. The lease is in the thread's [Claim].
	Token string
	Fence uint64
	Owner string
	End   ClaimEnd

	// Instance is that of the latest execution. RunStatus, Termination, Response and
	// RunError are what it came to.
	Instance    string
	RunStatus   RunStatus
	Termination string
	Response    string
	RunError    string

	CreatedAt   time.Time
	UpdatedAt   time.Time
	CompletedAt time.Time

	// Request is the payload. It is written when the dispatch is first put and never
	// changes; a put of a dispatch that is there leaves it as it is. Lists leave it out.
	Request []byte
	// Digest tells requests apart under one idempotency key.
	Digest string
}

// Claim is the lease of a thread.
type Claim struct {
	Dispatch string
	// Token names the claim; nobody can guess it. Fence grows with each claim of the thread.
	Token string
	Fence uint64
	Owner string
	Until time.Time
	// Stop is set when the holder was asked to stop, and says why.
	Stop string
}

// Head is what a thread comes down to. A thread that was never written to has a
// Head with nothing but its id.
type Head struct {
	Thread string
	// Tenant owns the thread. It is set by the first dispatch.
	Tenant string
	// Epoch counts interrupts, Fence claims, and Seq dispatches.
	Epoch, Fence, Seq uint64
	// Queued is how many dispatches are queued, Messages how long the log is.
	Queued   int
	Messages int
	Claim    *Claim
	// Latest is the run that was made last, Open the one that is not done.
	Latest, Open RunRef
	// Commit and Interrupt are the ids of the latest of each, which may come twice.
	Commit, Interrupt string
	// ReservedUntil keeps the thread free for whoever made the latest interrupt.
	ReservedUntil time.Time
	// DueAt is when somebody should look at the thread: something can be claimed, or a
	// lease or a wait is over. It may be too early, but never too late; zero is never.
	// Rank is the place among all threads that are due, lower is earlier.
	DueAt time.Time
	Rank  int64

	UpdatedAt time.Time
}

// RunRef is what a [Head] knows of a run.
type RunRef struct {
	ID     string
	Agent  string
	Status RunStatus
	// Wait is the reason of a run that waits, and WaitUntil when that is over at the latest.
	Wait      string
	WaitUntil time.Time
}

// Run is the record of a run.
type Run struct {
	ID     string
	Thread string
	Agent  string
	Parent string
	Status RunStatus
	// Termination says why it is done, Wait what it waits for, until WaitUntil.
	Termination string
	Wait        string
	WaitUntil   time.Time
	// Output is its last text, Error why it failed.
	Output string
	Error  string
	// Dispatch is the latest one, Session the execution of it, and Attempt its number.
	Dispatch string
	Session  string
	// Input are the ids of the messages that its dispatches brought.
	Input []string
	// Data is the runtime's own record.
	Data []byte

	CreatedAt  time.Time
	StartedAt  time.Time
	FinishedAt time.Time
	UpdatedAt  time.Time
}

// Ref is what a [Head] keeps of the run.
func (r Run) Ref() RunRef {
	return RunRef{ID: r.ID, Agent: r.Agent, Status: r.Status, Wait: r.Wait, WaitUntil: r.WaitUntil}
}

// Message is an entry of a thread's log.
type Message struct {
	// Seq is its place, from 1.
	Seq int
	// ID is unique in its thread.
	ID   string
	Run  string
	Data []byte
	// At is when it was first written.
	At time.Time
}
