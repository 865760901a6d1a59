// Package recordstore keeps decision records in the SQLite file of a mailbox, so that a program has one
// file.
//
// The end of a run is on the disk when a call returns; what comes before outlives the process, and the
// machine as soon as something else was flushed: a run does not wait for the disk at each hook.
//
// # Concurrency
//
// A [Store] is safe for concurrent use, and several processes may use one file. Closing it lets go of
// the records alone: whoever opened the sqlitestore.Store closes that, after it.
//
// # Errors
//
// record.ErrUnknown and record.ErrAmbiguous are about the id that was asked for. Of a call that failed
// nothing was kept, except when the error came from the disk. One that another process is in the way of
// fails after [CallTime]. A file whose tables are newer than this package is refused by [New].
package recordstore
