package mailbox

import "time"

// priorityDefault is the priority of what names none: lower is earlier, from 0 to 255.
const priorityDefault uint8 = 128

// Dispatch is one delivery of a request to a run. Times have milliseconds; zero
// times and empty strings mean that there is none. All fields but Request and Seq
// are small.
type Dispatch struct {
	// ID is unique in the store, Thread and RunID name what it is for.
	ID     string `json:"id,omitzero"`
	Thread string `json:"thread,omitzero"`
	RunID  string `json:"run_id,omitzero"`
	// Seq orders the dispatches of a thread: a later one has a greater one.
	Seq      uint64 `json:"seq,omitzero"`
	Priority uint8  `json:"priority,omitzero"`
	// Epoch is that of the thread at the time. A dispatch whose epoch is below the
	// thread's is stale. One that an interrupt superseded while it was queued has the epoch that the interrupt began.
	Epoch uint64 `json:"epoch,omitzero"`
	// Dedupe is a key that only one dispatch of the thread may have that is not terminal.
	Dedupe string `json:"dedupe,omitzero"`
	// Origin is where the request comes from: user, internal, or a word of the embedder.
	Origin string `json:"origin,omitzero"`
	Status Status `json:"status,omitzero"`

	AvailableAt time.Time `json:"available_at,omitzero"`
	Attempts    int       `json:"attempts,omitzero"`
	MaxAttempts int       `json:"max_attempts,omitzero"`
	LastError   string    `json:"last_error,omitzero"`
	// Holding is set when it failed and keeps its place: what is behind it waits.
	Holding bool `json:"holding,omitzero"`
	// Postponed is how often it was postponed without an attempt, since it last failed.
	Postponed int `json:"postponed,omitzero"`

	// Token, Fence and Owner are those of the latest claim, and End is how the dispatch
	// lost it; it is empty while it has it. The lease is in the thread's [Claim].
	Token string `json:"token,omitzero"`
	Fence uint64 `json:"fence,omitzero"`
	Owner string `json:"owner,omitzero"`
	End   string `json:"end,omitzero"`

	// Instance is that of the latest execution. RunStatus, Termination, Response and
	// RunError are what it came to.
	Instance    string    `json:"instance,omitzero"`
	RunStatus   RunStatus `json:"run_status,omitzero"`
	Termination string    `json:"termination,omitzero"`
	Response    string    `json:"response,omitzero"`
	RunError    string    `json:"run_error,omitzero"`

	CreatedAt   time.Time `json:"created_at,omitzero"`
	UpdatedAt   time.Time `json:"updated_at,omitzero"`
	CompletedAt time.Time `json:"completed_at,omitzero"`

	// Request is the payload. It never changes. Only a claim returns it.
	Request []byte `json:"-"`
	// Digest distinguishes requests under one idempotency key.
	Digest string `json:"digest,omitzero"`
	// Own is set if the mailbox made the id at random: no other dispatch can have it.
	Own bool `json:"own,omitzero"`
}

// Claim is the lease of a thread.
type Claim struct {
	Dispatch string `json:"dispatch,omitzero"`
	// Token names the claim and cannot be guessed. Fence grows with each claim of the thread.
	Token string    `json:"token,omitzero"`
	Fence uint64    `json:"fence,omitzero"`
	Owner string    `json:"owner,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Stop is set when the holder was asked to stop, and is why.
	Stop string `json:"stop,omitzero"`
	// Paused is set in the answer to an extension if the thread is paused.
	Paused bool `json:"-"`
}

// Thread is the record of a thread. That of a thread that was never written to has nothing but its id.
type Thread struct {
	ID string `json:"thread,omitzero"`
	// Tenant owns the thread. It is set by the first dispatch.
	Tenant string `json:"tenant,omitzero"`
	// Epoch counts interrupts, Fence claims, and Seq dispatches.
	Epoch uint64 `json:"epoch,omitzero"`
	Fence uint64 `json:"fence,omitzero"`
	Seq   uint64 `json:"seq,omitzero"`
	// Queued is how many dispatches are queued, Messages how long the log is.
	Queued   int    `json:"queued,omitzero"`
	Messages int    `json:"messages,omitzero"`
	Claim    *Claim `json:"claim,omitzero"`
	// Latest is the run that was made last, Open the one that is not done.
	Latest RunRef `json:"latest,omitzero"`
	Open   RunRef `json:"open,omitzero"`
	// Commit and Interrupt are the ids of the latest of each, which may come twice.
	Commit    string `json:"commit,omitzero"`
	Interrupt string `json:"interrupt,omitzero"`
	// ReservedUntil keeps the thread free for the request that made the latest interrupt.
	ReservedUntil time.Time `json:"reserved_until,omitzero"`
	// DueAt is when a process should poll the thread: something can be claimed, or a lease or a wait is over. It may be too early,
	// but never too late; zero is never. Rank is the place among all threads that are due, lower is earlier.
	DueAt time.Time `json:"due_at,omitzero"`
	Rank  int64     `json:"rank,omitzero"`

	// PausedAt is when an operator paused the thread: nothing of it is claimed until it is resumed. Zero if it is not paused.
	PausedAt time.Time `json:"paused_at,omitzero"`

	// Parent is the thread above it, set by the first dispatch. Title and Metadata, a JSON object, are set by Describe.
	Parent   string `json:"parent,omitzero"`
	Title    string `json:"title,omitzero"`
	Metadata string `json:"metadata,omitzero"`

	// CreatedAt is when the first dispatch was queued.
	CreatedAt time.Time `json:"created_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
}

// RunRef is what a [Thread] has of a run.
type RunRef struct {
	ID     string    `json:"id,omitzero"`
	Agent  string    `json:"agent,omitzero"`
	Status RunStatus `json:"status,omitzero"`
	// Wait is the reason of a run that waits, and WaitUntil when that is over at the latest.
	Wait      string    `json:"wait,omitzero"`
	WaitUntil time.Time `json:"wait_until,omitzero"`
}

// Run is the record of a run.
type Run struct {
	ID     string `json:"id,omitzero"`
	Thread string `json:"thread,omitzero"`
	Agent  string `json:"agent,omitzero"`
	Parent string `json:"parent,omitzero"`
	// Result is where it stands.
	Result

	// Dispatch is the latest one, and Session the execution of it.
	Dispatch string `json:"dispatch,omitzero"`
	Session  string `json:"session,omitzero"`
	// Input are the ids of the messages that its dispatches brought.
	Input []string `json:"input,omitzero"`
	// Data is the runtime's own record. Lists and claims leave it out.
	Data []byte `json:"-"`
	// Own is set if the mailbox made the id at random: no other run can have it.
	Own bool `json:"own,omitzero"`

	RunTimes
}

// RunTimes are moments of a run; zero if they have not come.
type RunTimes struct {
	CreatedAt  time.Time `json:"created_at,omitzero"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
	UpdatedAt  time.Time `json:"updated_at,omitzero"`
}

// Result is where a run stands, as after an execution. A Result without a Status leaves it as its commits made it.
type Result struct {
	Status RunStatus `json:"status,omitzero"`
	// Termination is why it is done, Response its last text, Error why it failed.
	Termination string `json:"termination,omitzero"`
	Response    string `json:"output,omitzero"`
	Error       string `json:"error,omitzero"`
	// Wait is what it waits for, until WaitUntil, for ever if that is zero.
	Wait      string    `json:"wait,omitzero"`
	WaitUntil time.Time `json:"wait_until,omitzero"`
	// Tickets are the calls that wait for a decision, the first of them. Totals are what the run has used so far, left as they are if they
	// are zero.
	Tickets []Ticket `json:"tickets,omitempty"`
	Totals  Totals   `json:"totals,omitzero"`
}

// Totals are what a run has used: inferences, tokens of the prompts, of them those that were read from and written to the provider's cache,
// tokens of the answers, and what all that cost, in the unit of the runtime.
type Totals struct {
	Steps      int     `json:"steps,omitzero"`
	Prompt     int64   `json:"prompt,omitzero"`
	CacheRead  int64   `json:"cache_read,omitzero"`
	CacheWrite int64   `json:"cache_write,omitzero"`
	Completion int64   `json:"completion,omitzero"`
	Cost       float64 `json:"cost,omitzero"`
}

// Ticket is a call that waits for a decision, as lists have it.
type Ticket struct {
	ID      string `json:"id"`
	Call    string `json:"call,omitzero"`
	Tool    string `json:"tool,omitzero"`
	Action  string `json:"action,omitzero"`
	Message string `json:"message,omitzero"`
	By      string `json:"by,omitzero"`
}

// maxTickets bounds the tickets that a run record has, and maxTicketText each of their texts, in bytes. The runtime's own record has all.
const (
	maxTickets    = 32
	maxTicketText = 512
)

// Postponed reports whether a run waits with a dispatch that is queued, and not for another one.
func (r RunRef) Postponed() bool {
	return r.Status == RunWaiting && (r.Wait == WaitRate || r.Wait == WaitPause)
}

// takes reports whether a request that names no run is for this one, which is open: decisions are also if it is under way.
func (r RunRef) takes(decides bool) bool {
	return r.Status == RunWaiting && !r.Postponed() || decides && (r.Status == RunRunning || r.Status == RunWaiting)
}

// Ref returns what a [Thread] keeps of the run.
func (r Run) Ref() RunRef {
	return RunRef{ID: r.ID, Agent: r.Agent, Status: r.Status, Wait: r.Wait, WaitUntil: r.WaitUntil}
}

// Message is an entry of a thread's log.
type Message struct {
	// Seq is its place, from 1.
	Seq int `json:"seq,omitzero"`
	// ID is unique in its thread.
	ID   string `json:"id,omitzero"`
	Run  string `json:"run,omitzero"`
	Data []byte `json:"data,omitzero"`
	// At is when it was first written.
	At time.Time `json:"at,omitzero"`
}
