// Package sessionstore keeps sessions in the PostgreSQL schema of a mailbox: the messages of threads, and what became of their
// compactions.
//
// # Concurrency
//
// A [Store] is safe for concurrent use and starts no goroutine; several processes may use one schema. Writers of one thread take turns.
// Closing it lets go of the threads alone: whoever opened the pgstore.Store closes that, after it.
//
// # Errors
//
// session.ErrUnknown is a thread without a log, compaction.ErrConflict a state that was changed meanwhile. Of a call that failed nothing
// was kept, except when the connection broke during the commit. One that others are in the way of fails after [CallTime]. A schema whose
// tables are newer than this package is refused by [New].
package sessionstore
