// Package compaction keeps a conversation within a model's context window
// without losing it: a summary replaces the older part of the view, and the
// log keeps every message.
//
// A compaction is a [Marker] over the log. [Plan] selects the messages that a summary
// would replace, [View] shows the log with a marker applied, [Truncate] is the
// deterministic fallback when the window is exceeded, [Scorer] measures what a
// summary keeps. These are pure. A [Compactor] does it in the background: it
// reserves, asks for admission, spawns a summarizer, and swaps the result in when
// the run consumes the notification.
//
// What must outlive the process is in a [Store]: the reservation, what the
// summarizer answered, the markers, and what happened. A [Limiter] bounds how many
// compactions a process has under way. The ledger of a thread is the state of its conversation, see
// [abi.Ledger]: it is continued before each compaction, given to the summarizer next to the messages, and
// [Ledger] renders it without a model: by default, and when the summarizer keeps failing.
//
// # Concurrency
//
// Pure functions may be called concurrently. A [Compactor], a [Limiter] and
// [Memory] are safe for
// concurrent use and start no goroutine of their own: summarizers run where
// Config.Spawn puts them. A thread belongs to one process at a time; of two that
// change its state, one gets [ErrConflict].
//
// # Errors
//
// A compaction that fails, is refused or comes late leaves the view as it was,
// and says so in an [Event]. [New] names the field that is wrong.
package compaction
