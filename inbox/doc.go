// Package inbox carries notifications from background tasks to the threads that own them.
//
// A [Box] is the queue of one reader in memory, as of a sub-agent, or of a thread that is delivered to without a store: many senders.
// What was accepted is read, or handed back by [Box.Close].
//
// An [Inbox] keeps the notifications of all threads in a store until they are acknowledged. With the
// record of a task, the notification of its end is one commit. A reader takes what there is
// ([Inbox.Take]), puts it into the conversation, persists the conversation, and acknowledges
// ([Delivery.Done]). A notification that is not acknowledged comes again: after Release, after the
// lease, after a restart. One that is acknowledged never does.
//
// [FollowUp], [Reminder] and [Events] render notifications as one text for a model. What tasks report
// is foreign text: it is escaped and cut, so that it can neither close a tag nor pose as the
// notification of another task.
//
// # Wakes
//
// Once an Inbox is started, a notification that no reader takes wakes its thread: once for all
// that arrived within the debounce time, then again with growing pauses until a reader acknowledges
// it. Housekeeping wakes no thread.
//
// # Several processes
//
// Processes may share a store (Config.Shared). Each takes the notifications of all, wakes the threads
// for which it committed one, and, every MaxRetry, those for which another process did. Two of them
// may deliver the same notification; its key is the same then. Tasks belong to the process that started
// them, for as long as it is alive ([Inbox.Alive]), by the clock of the store; another one recovers them a minute later. Of
// several, one resumes a task ([Inbox.Claim]). A process that was only suspended may execute it to its end as well: the first
// of the two ends is queued, the second changes nothing.
//
// # Runs
//
// An agent.Agent reads an Inbox: Take is for its Config, and its Wake for [Inbox.Start].
//
// # Concurrency
//
// Everything is safe for concurrent use. A Box starts no goroutine and need not be closed. An
// Inbox has two goroutines when its store is shared, and one for each wake under way; its owner calls Close
// before it closes the store, and after it has closed the background.Manager whose ledger the Inbox is.
//
// # Errors
//
// [ErrFull] reports that a box or a thread has no room, [ErrTooLarge] that one notification is too large,
// [ErrClosed] that the box or inbox was closed. Errors of the store come back wrapped, with the
// thread; the notification was not queued then.
package inbox
