// Package session keeps conversations: their messages, and what became of their
// compactions. A [Store] is what mortise run writes to, and what mortise compact show
// and undo read; session/sessiontest is its contract as a test. A [Dir] is one in a folder.
//
// # Files
//
// Each thread has a folder of its own, which only its user may read:
//
//	log.jsonl         messages in order, one a line; a line may replace a message
//	events.jsonl      what happened to compactions, one event a line
//	state-7.json      the compaction state at revision 7; the highest one counts
//	lock              locked by whoever changes the state, and empty
//
// A log only grows. What a crash left half written at the end of a file was never
// accepted, and is left out. State is on the disk when Swap returns; lines survive the
// end of the process, and not that of the machine.
//
// # Concurrency
//
// A [Store] is safe for concurrent use; a [Dir] starts no goroutine. Several processes may
// use the state of one thread: of two that change the same revision, one wins. Only
// one of them may write the log.
//
// # Errors
//
// [ErrUnknown] is a thread without a log, compaction.ErrConflict a state that was changed
// meanwhile. What is in a file and makes no sense is an error that names the file and the line.
package session
