package mailbox

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
	"github.com/mortise-dev/mortise/store"
)

// Thread returns the record of a thread. That of a thread that was never used has nothing but its id.
func (m *Mailbox) Thread(ctx context.Context, thread string) (Thread, error) {
	return m.queue.Thread(ctx, thread)
}

// Threads lists thread records by thread. A listing sees all changes that returned before it began, and one with a limit of 0 is empty.
func (m *Mailbox) Threads(ctx context.Context, q ThreadQuery) ([]Thread, error) {
	return m.queue.Threads(ctx, q)
}

// Due lists threads for which there is something to do by a time, in the order in which processes come to them.
func (m *Mailbox) Due(ctx context.Context, by time.Time, limit int) ([]Thread, error) {
	due, _, err := m.queue.Due(ctx, queue.DueQuery{By: by, Limit: limit})
	return due, err
}

// Dispatch returns a dispatch, or false.
func (m *Mailbox) Dispatch(ctx context.Context, id string) (Dispatch, bool, error) {
	return m.queue.Dispatch(ctx, id)
}

// Dispatches lists dispatches.
func (m *Mailbox) Dispatches(ctx context.Context, q DispatchQuery) ([]Dispatch, error) {
	return m.queue.Dispatches(ctx, q)
}

// Run returns a run, or false.
func (m *Mailbox) Run(ctx context.Context, id string) (Run, bool, error) {
	return m.queue.Run(ctx, id)
}

// Runs lists runs without their data, the newest first.
func (m *Mailbox) Runs(ctx context.Context, q RunQuery) ([]Run, error) { return m.queue.Runs(ctx, q) }

// Messages lists messages of a thread's log by Seq, from the one at from, limit at most.
func (m *Mailbox) Messages(ctx context.Context, thread string, from, limit int) ([]Message, error) {
	return m.queue.Messages(ctx, thread, from, limit)
}

// Image returns what the thread's executions committed as its image last.
func (m *Mailbox) Image(ctx context.Context, thread string) ([]byte, error) {
	_, image, err := m.queue.Image(ctx, thread)
	return image, err
}

// Count counts dispatches by status. It may lag by some seconds.
func (m *Mailbox) Count(ctx context.Context) (map[Status]int, error) { return m.queue.Count(ctx) }

// Claims counts the executions of all processes, by the tenants that have some.
func (m *Mailbox) Claims(ctx context.Context) (map[string]int, error) { return m.queue.Claims(ctx) }

// Describe changes the title and the metadata of a thread, and returns its record. A thread without a dispatch is [ErrNotFound].
func (m *Mailbox) Describe(ctx context.Context, thread string, d Description) (Thread, error) {
	return m.queue.Describe(ctx, thread, d)
}

// Delete drops a thread and the threads below it that belong to its tenant, with everything that the store has in them, the lowest first.
// It returns how many there were. One that a process holds is [ErrBusy]: those above it stay then. Interrupt it first, or wait.
func (m *Mailbox) Delete(ctx context.Context, thread string) (int, error) {
	return m.queue.Delete(ctx, thread)
}

// Drop drops one thread, as Delete does, also one that is damaged. A claim that cannot be read counts as over when the thread was not
// written to for 10 minutes. The thread's next claim has a greater fence than all before.
func (m *Mailbox) Drop(ctx context.Context, thread string) error { return m.queue.Drop(ctx, thread) }

// ListedThread returns the cell of a thread record, for a program that keeps conversations in the same store and executes their runs itself:
// with it the thread is in lists. It takes a snapshot with the cells of [ListedQuery], and returns false when the mailbox has runs in the thread.
func ListedThread(s store.Snapshot, t Thread) (store.Cell, bool) { return queue.ListedThread(s, t) }

// ListedQuery is what [ListedThread] depends on.
func ListedQuery() store.Range { return queue.ListedQuery() }
