// Package sessionstore keeps sessions in the SQLite file of a mailbox: the messages of threads, and
// what became of their compactions. A program has one file, and all that is in it shares flushes.
//
// Messages and states are on the disk when a call returns; events outlive the process, and the machine
// as soon as something else was flushed.
//
// # Concurrency
//
// A [Store] is safe for concurrent use, and several processes may use one file. Closing it lets go of
// the threads alone: whoever opened the sqlitestore.Store closes that, after it.
//
// # Errors
//
// session.ErrUnknown is a thread without a log, compaction.ErrConflict a state that was changed
// meanwhile. Of a call that failed nothing was kept, except when the error came from the disk. One that
// another process is in the way of fails after [CallTime]. A file whose tables are newer than this
// package is refused by [New].
package sessionstore
