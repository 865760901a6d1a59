// Package background runs tasks of a conversation in the background and notifies the conversation
// when they have ended.
//
// A [Manager] runs task bodies on goroutines of their own. What a body emits,
// and how it ended, is delivered as [abi.Notice] values to the thread that owns
// the task: through the Deliver function of the [Config], or into a [Ledger], which
// keeps them until they are acknowledged. inbox.Inbox is one.
//
// # One commit
//
// A task has exactly one terminal notification. The notification is delivered and the status
// changes in one step: no caller of Get, List, HasBlocking or Wait sees the one without the other. While Deliver waits for room, or the Ledger fails, the task is
// shown as running, and the step is tried again until it succeeds. With a Ledger the
// task's record is part of the step.
//
// Readers of a thread wait while an end of the thread is being delivered, and so an attempt is short. The context of Deliver or Commit ends after
// 20 ms at first, after 250 ms with a Ledger. An attempt that finds no room leaves none for the next, which must not wait; one that fails
// otherwise doubles the time, up to 5 s, so that a slow disk gets its time. Threads do not wait for each other.
//
// # Restart
//
// [Manager.Recover] takes over what a Ledger kept; without one, the [Plugin] keeps
// a thread's tasks in the thread's state and [Manager.Restore] takes them over. A
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
// Everything is safe for concurrent use. Deliver and the Ledger's Commit are called
// from many goroutines, also for one thread, and while the status of the thread's tasks
// is held back: they must not call the Manager, and must return when their context is
// done. The owner of the Manager calls Close.
//
// # Errors
//
// Spawn returns [ErrClosed], [ErrQueueFull], an error that names what is wrong with
// the [Spec], or the error of the Ledger. SendMessage has a sentinel for each reason.
// A body's error, panic or timeout is not an error of the package: it is the end of
// the task, and its notification has it. What was lost or abandoned is in [Stats].
package background
