package mailbox

import (
	"context"
	"time"
)

// Store remembers threads, their dispatches, runs and messages. It decides nothing:
// see [Store.Update]. It is safe for concurrent use, also by several processes if it
// outlives one. Strings are any valid UTF-8, at most 256 bytes for ids, keys and owners.
//
// Requests, images, data of runs and messages may have some MiB, all else is small: [QueueConfig] bounds what comes.
//
// Times come and go with milliseconds, in UTC; the zero time comes back as the zero time.
// Nil and empty byte slices are the same, and so are nil and empty lists. What a store hands out is the
// caller's own.
type Store interface {
	// Update makes one transition. It reads what need names of the thread, calls
	// decide with it, and applies the [Change] that comes back: whole or not at all,
	// durable when it returns nil, and as if no other Update of the thread had
	// happened between reading and writing. An error of decide comes back wrapped or as
	// it is, and nothing is written; neither is anything for a Change without a Head.
	//
	// A store may call decide several times, with fresh state each time. The state is
	// decide's own; what is in the change is the store's. decide is pure and quick and does not use the store.
	// When Update has returned, decide runs no more. An error of
	// the store itself may come although the change was applied.
	Update(ctx context.Context, thread string, need Need, decide func(State) (Change, error)) error
	// Load reads what need names, as of one moment after all updates that returned.
	Load(ctx context.Context, thread string, need Need) (State, error)
	// Due returns heads that are due, by rank and then by thread, and when the first
	// one will be due that is not yet; zero if none will be. It costs the same however
	// many threads and dispatches there are. It may run behind the updates of other processes
	// by some seconds.
	Due(ctx context.Context, q DueQuery) (due []Head, next time.Time, err error)
	// Find says which thread a dispatch or a run belongs to.
	Find(ctx context.Context, kind Kind, id string) (thread string, found bool, err error)
	// Purge drops terminal dispatches, and says how many.
	Purge(ctx context.Context, q PurgeQuery) (int, error)
	Reader
}

// Reader is the part of a [Store] that lists. A listing sees all updates that
// returned before it began. One with a limit of 0 or less is empty.
type Reader interface {
	// Dispatches lists dispatches without their requests.
	Dispatches(ctx context.Context, q DispatchQuery) ([]Dispatch, error)
	// Messages lists messages of a thread's log by Seq, from the one at from, limit at most.
	Messages(ctx context.Context, thread string, from, limit int) ([]Message, error)
	// Runs lists runs without their data, the newest first.
	Runs(ctx context.Context, q RunQuery) ([]Run, error)
	// Threads lists heads by thread.
	Threads(ctx context.Context, q ThreadQuery) ([]Head, error)
	// Count counts dispatches by status, and may go through all of them.
	Count(ctx context.Context) (Counts, error)
	// Claims counts the claims of each tenant that has some. It sees the updates of this Store that returned before it began, and all that
	// were made before those, by whatever process: so of several that claim and then count, the last to claim sees the claims of all. It
	// costs the same however many dispatches there are.
	Claims(ctx context.Context) (map[string]int, error)
}

// Kind is a kind of id.
type Kind string

// Kinds of ids.
const (
	KindDispatch Kind = "dispatch"
	KindRun      Kind = "run"
)

// Need says what of a thread a transition has to see. The head always comes.
type Need struct {
	// Dispatches are ids. Those of other threads count as not there.
	Dispatches []string
	// Claimed is the dispatch that Head.Claim names.
	Claimed bool
	// Dedupe is a key: the dispatch of the thread that has it and is not terminal.
	Dedupe string
	// Next asks for what could be claimed at Now: see [State].
	Next bool
	Now  time.Time
	// Queued asks for all queued dispatches.
	Queued bool
	// Requests says that dispatches come with their requests.
	Requests bool
	// Runs are ids. RunsOf asks also for the runs of all dispatches that come, and for Head.Open
	// and Head.Latest.
	Runs   []string
	RunsOf bool
	// Image asks for the thread's image.
	Image bool
	// Lenient asks for the head alone, and for what can still be read of it if it is damaged: for a [Change] with Drop, and no
	// other. What cannot be read is zero; Fence is then no less than any that the thread has given, and Claim is set unless it is certain
	// that there is none, with an UpdatedAt that is not before its latest lease was taken, if that is known.
	Lenient bool
}

// State is what a store knows of a thread at one moment.
type State struct {
	Head Head
	// Dispatches holds all that was asked for, by id, Runs likewise.
	Dispatches map[string]Dispatch
	Runs       map[string]Run
	// Duplicate is the id of the dispatch that has the key of Need.Dedupe.
	Duplicate string
	// Next is the first queued dispatch, by priority and then by Seq, with AvailableAt not after Now, and
	// Holder the first queued one that is Holding. Later is the earliest
	// AvailableAt of queued ones that is after Now. All are empty if there is none. The
	// dispatches themselves are in Dispatches.
	Next, Holder string
	Later        time.Time
	// Queued are the ids of all queued dispatches, by priority and then by Seq.
	Queued []string
	Image  []byte
}

// Change is what a transition writes.
type Change struct {
	// Head takes the place of the thread's. Without one nothing is written.
	Head *Head
	// Dispatches and Runs are put in place of those with their ids. They are all of this thread. A
	// dispatch or run of that id in another thread is [ErrExists].
	Dispatches []Dispatch
	Runs       []Run
	// Messages are put at their Seq. Those up to the length of the log as it was take
	// the place of others, which have the same ids; the rest follow on it without a gap, no id
	// twice. The store refuses others with [ErrConflict].
	Messages []Message
	// Image takes the place of the thread's, if it is not nil.
	Image []byte
	// Drop drops the thread with all that is in it, also what is damaged. What stays is Head, which has the id and the fence and
	// nothing else; no listing has it, and a thread that has no fence is as if it had never been.
	Drop bool
	// Signal says that other processes should look at the thread at Head.DueAt. Dispatch says
	// why, if it is one. Stores without signals ignore it.
	Signal   bool
	Dispatch string
}

// DueQuery asks for threads.
type DueQuery struct {
	// By is when they are due at the latest.
	By time.Time
	// Skip are tenants that are left out.
	Skip  []string
	Limit int
}

// DispatchQuery selects dispatches.
type DispatchQuery struct {
	// Thread selects those of one thread, in the order of priority and Seq. Without it
	// the order is UpdatedAt, then ID.
	Thread string
	// Statuses are those wanted, all when empty.
	Statuses []Status
	// After is the last one of the page before; its key fields are enough. Zero is
	// the first page.
	After Dispatch
	Limit int
}

// RunQuery selects runs. Zero fields select nothing out.
type RunQuery struct {
	Status RunStatus
	Agent  string
	Tenant string
	Thread string
	// Since is when they were made at the earliest.
	Since time.Time
	// After is the last run of the page before; ID and CreatedAt are enough.
	After Run
	Limit int
}

// ThreadQuery selects threads. Zero fields select nothing out.
type ThreadQuery struct {
	Tenant string
	// Parent is the thread above.
	Parent string
	// Wait is what the open run of the thread waits for.
	Wait string
	// Queued selects those with queued dispatches.
	Queued bool
	// After is the last thread of the page before.
	After string
	Limit int
}

// PurgeQuery selects terminal dispatches.
type PurgeQuery struct {
	Statuses []Status
	// Before is when they were updated at the latest, exclusively.
	Before time.Time
	Limit  int
}

// Counts are figures of a whole store. They may run behind by some seconds.
type Counts struct {
	Status map[Status]int
}
