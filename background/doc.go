// Package background runs tasks of a conversation in the background and notifies the conversation
// when they have ended.
//
// A [Manager] runs task bodies on goroutines of their own. What a body emits,
// and how it ended, is queued as [abi.Notice] values for the thread that owns
// the task, in a [Ledger], which has them until they are acknowledged. inbox.Inbox is one.
//
// # One commit
//
// A task has exactly one terminal notification. The notification is queued, the record of the task is replaced, and the status
// changes in one step: no caller of Get, List, HasBlocking or Wait sees the one without the other. While the thread has no room, or the
// Ledger fails, the task is shown as running, and the step is tried again until it succeeds. Readers of a thread wait while the
// Ledger commits an end of it, 5 s at most. Threads do not wait for each other.
//
// A task whose thread was dropped ends without a notification.
//
// # Restart
//
// [Manager.Recover] takes over what a Ledger kept. A
// task that was running is resumed if Config.Resume has a body for it, a bounded number of
// times, and else ends as failed, with a notification. A sub-agent that is resumed has no
// inbox.
//
// # Limits
//
// Bodies need a place. Places are counted for each thread and in all, apart for
// work, services and housekeeping; a task that finds none waits in a bounded queue, and a
// thread that has all of its own is passed over. A body that waits for another
// task with [Manager.WaitTask] leaves its place to others meanwhile. Run time, rate
// and size of events, results, errors and names are bounded, and so is what is
// kept of tasks that have ended. A task that has not ended is never forgotten.
//
// # Lineage
//
// A task knows the task, run, call and agent that it comes from. All of that goes
// with the context ([WithLineage]), so it reaches what a body starts concurrently.
// [Manager.CancelTree] and [Manager.CancelRun] follow it.
//
// # Cancellation
//
// A body runs on a context that keeps the spawner's values but not its end. It
// is cancelled by Cancel, by its timeout, and by Close. A body that still runs after
// that is abandoned when the grace period is over: the task ends as failed, and
// what the body does later is ignored. Go cannot stop such a goroutine; it is
// counted and logged.
//
// # Concurrency
//
// Everything is safe for concurrent use. The Ledger is called from many goroutines, also for one thread. The owner of
// the Manager calls Close, before it closes the Ledger.
//
// # Errors
//
// Spawn returns [ErrClosed], [ErrQueueFull], an error that names what is wrong with
// the [Spec], or the error of the Ledger. SendMessage has a sentinel for each reason.
// A body's error, panic or timeout is not an error of the package: it is the end of
// the task, and its notification has it. What was lost or abandoned is in [Stats].
package background
