// Package inbox carries notifications from background work to the run that waits for them.
//
// A [Box] is a bounded first-in first-out queue of [abi.Notice] values. Many
// senders, one reader. What was accepted is read, or handed back by
// [Box.Close]; it is never dropped.
//
// # Closing
//
// A run that is about to end calls [Box.Close] first and looks at what comes
// back, then decides. A notification sent before that call is in what comes back, one
// sent after it goes to the fallback of the [Config]. There is no moment in
// between at which a notification is accepted and then lost.
//
// # Concurrency
//
// A Box is safe for concurrent use and starts no goroutine. The run that made it
// closes it. The fallback runs on the goroutine of the sender.
//
// # Errors
//
// [ErrClosed] says that the box is closed, [ErrFull] that TrySend found no room.
// Otherwise the error of the context
// is returned, wrapped.
package inbox
