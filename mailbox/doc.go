// Package mailbox dispatches runs durably. What is submitted to it is kept in a
// [Store] until a worker of this process or of another one has carried it out, once
// at a time for each thread, however processes, networks and disks behave meanwhile.
//
// A thread has at most one claim. A claim is a lease with a token: whoever holds
// it may write to the thread, and nobody else. When its lease is over, somebody else
// may take the thread, with a new token and a greater fence; what the former holder
// still writes is refused. Payloads of requests, messages and runs are bytes here.
//
// # The seam
//
// A [Store] remembers and compares, and the rules are here: each is a pure function
// of the state of a thread and the time to a [Change], which the store applies
// whole or not at all ([Store.Update]). So a transition that was applied and reported as
// failed is simply asked for again: it finds what it did by id and token. [Queue] has the
// transitions, one method each.
//
// # Processes
//
// A [Mailbox] is the part of one process: it takes requests, and between [Mailbox.Start] and [Mailbox.Stop] it carries
// out what is due, whoever has queued it. Its [Observer]s are told what it does. A thread that fails, since its records are damaged
// or the store has trouble with it, is set aside for a while: it keeps neither the others nor a start back.
//
// # Events
//
// What a run sends while it is carried out is read from any number on: in the process that carries it out as a [Stream], and from
// any other with [Mailbox.Attach], if the store has an [EventLog]. Events are added to that in batches, in the background, by whoever holds the
// claim and by nobody else. They are not the truth about a run, which is in its thread's log: the last ones before a crash may be
// missing. They are never reordered, and never come twice; when another process continues, its numbers are above all that
// were given before. The last event, [EventSettled], is made of the dispatch: of the processes that had it, only the one with the latest
// claim ends it. [Mailbox.Await] waits for the end in whichever process it comes.
//
// # Concurrency
//
// Everything is safe for concurrent use. Close a Mailbox when it is not needed any more, before its store.
//
// # Errors
//
// [ErrNotFound], [ErrExists], [ErrConflict] and [ErrFull] say why a transition
// was refused; nothing has changed then. [ErrTooLarge] is a request, or what a run writes, with more bytes than
// [QueueConfig] allows; a run that writes too much is a dead letter that says so. An error of the store comes back wrapped,
// and says nothing about what was kept: ask again, with the same ids.
package mailbox
