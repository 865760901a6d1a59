// Package compaction keeps a conversation within a model's context window
// without losing it: a summary stands in for the older part of the view, and the
// log keeps every message.
//
// A compaction is a [Marker] over the log. [Plan] says which messages a summary
// would stand for, [View] shows the log with a marker applied, [Truncate] is the
// deterministic fallback when the window is exceeded, [Scorer] measures what a
// summary keeps. These are pure. A [Compactor] does it in the background: it
// reserves, asks for admission, spawns a summarizer, and swaps the result in when
// the run consumes the notice.
//
// # Concurrency
//
// Pure functions may be called concurrently. A [Compactor] is safe for
// concurrent use and starts no goroutine of its own: summarizers run where
// Config.Spawn puts them.
//
// # Errors
//
// A compaction that fails, is refused or comes late leaves the view as it was,
// and says so in an [Event]. [New] names the field that is wrong.
package compaction
