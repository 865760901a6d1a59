// Package background runs work beside a conversation and tells the conversation
// when it is done.
//
// A [Manager] runs task bodies on goroutines of their own. What a body emits,
// and how it ended, is delivered as [abi.Notice] values to the thread that owns
// the task, through the Deliver function of the [Config], usually into an inbox.
//
// # One commit
//
// A task has exactly one terminal notice. The notice is delivered and the status
// changes in one step: nobody sees the one without the other through Get, List,
// HasBlocking or Wait. When Deliver waits for room the step is tried again until
// it is through, with the task still shown as running.
//
// # Cancellation
//
// A body runs on a context that keeps the spawner's values but not its end. It
// is cancelled by Cancel, by its timeout, and by Close. A body that goes on after
// that is abandoned when the grace period is over: the task ends as failed, and
// what the body does later is ignored. Go cannot stop such a goroutine; it is
// counted and logged.
//
// # Concurrency
//
// Everything is safe for concurrent use. Deliver is called while the status of
// the thread's tasks is held back, so it must not call the Manager and must
// return when its context is done. Whoever made the Manager calls Close.
//
// # Errors
//
// Spawn returns [ErrClosed], [ErrQueueFull], or an error that names what is
// wrong with the [Spec]. A body's error, panic or timeout is not an error of the
// package: it is the end of the task, and its notice says so.
package background
