// Package outbox keeps news for threads until the run that used it has been kept.
//
// An [Outbox] queues the notices of background tasks, by thread, in a [Store]: in
// memory ([Memory]), in a file ([File]), or elsewhere. With the task's record, the
// notice of its end is one commit. A reader takes what there is ([Outbox.Take]),
// puts it into the conversation, keeps the conversation, and acknowledges. What is
// not acknowledged comes again: after Release, after the lease, after a restart.
// What is acknowledged never does.
//
// # Wakes
//
// Once the Outbox is started, news that nobody takes wakes its thread: once for all
// that came within the debounce time, then again with growing pauses until somebody
// takes it and keeps it. There is no moment at which news waits and no wake is due,
// whatever order news, takes and restarts come in. Housekeeping wakes nobody.
//
// # Runs
//
// An agent.Agent reads an Outbox by itself: Take is for its Config, and its Wake for
// [Outbox.Start]. Package notice has the words.
//
// # Concurrency
//
// Everything is safe for concurrent use. An Outbox has one goroutine once it is
// started, and one for each wake under way; whoever made it calls Close, before that
// of the store, and after that of the background.Manager whose ledger it is.
//
// # Errors
//
// [ErrFull] says that a thread has Depth entries that nobody acknowledged, or that
// the store is full, [ErrTooLarge] that one entry is too large, [ErrClosed] and
// [ErrStoreClosed] that it is over. Errors of the store come back wrapped, with the
// thread; what they were about has not been queued.
package outbox
