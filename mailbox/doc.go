// Package mailbox dispatches runs durably. What is submitted to it is kept in a [store.Store] until a worker of this process or of another
// one has executed it, once at a time for each thread, however processes, networks and disks behave meanwhile.
//
// A thread has at most one claim. A claim is a lease with a token: its holder may write to the thread, and no other process. When its lease
// is over, another process may claim the thread, with a new token and a greater fence; what the former holder still writes is refused.
// Payloads of requests, messages and runs are bytes here.
//
// # Processes
//
// A [Mailbox] is the part of one process: it takes requests, and between [Mailbox.Start] and [Mailbox.Stop] it executes what is due, whichever
// process queued it. A program with a scheduler of its own calls [Mailbox.Poll] instead. It is notified of what others queue, and polls the store besides. A thread that fails, since its records are damaged or
// the store has trouble with it, is set aside for a while: it keeps neither the others nor a start back.
//
// # Events
//
// What a run sends is read from any number on with [Mailbox.Attach], in the process that executes it and, if the store has [store.Events], in any
// other. Events are added there in batches, in the background, by the holder of the claim alone. They are not the
// truth about a run, which is in its thread's log: the last ones before a crash may be missing. They are never reordered, and never come
// twice; when another process continues, its numbers are above all that were given before. The last event, [EventSettled], is made of the
// dispatch: of the processes that had it, only the one with the latest claim ends it. [Mailbox.Await] waits for the end in any process.
//
// # Concurrency
//
// Everything is safe for concurrent use. Close a Mailbox when it is not needed any more, before its store.
//
// # Errors
//
// [ErrNotFound], [ErrExists], [ErrConflict], [ErrFull], [ErrBusy] and [ErrInvalid] refuse a change; nothing has changed then. [ErrTooLarge] is
// a request, or what a run writes, with more bytes than [Limits] allow; a run that writes too much is a dead letter. [ErrUnknownOutcome] is a
// change whose answer was lost: repeat it, with the same ids. Another error of the store comes back wrapped, and nothing has changed.
package mailbox
