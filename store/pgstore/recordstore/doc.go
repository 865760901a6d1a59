// Package recordstore keeps decision records in the PostgreSQL schema of a mailbox.
//
// The end of a run is on the disk when a call returns. What comes before outlives the process, and the server's machine a moment later,
// or as soon as something else is flushed: a run does not wait for the disk at each hook.
//
// # Concurrency
//
// A [Store] is safe for concurrent use and starts no goroutine; several processes may use one schema, and those that write to one record
// take turns. Closing it lets go of the records alone: whoever opened the pgstore.Store closes that, after it.
//
// # Errors
//
// record.ErrUnknown and record.ErrAmbiguous are about the id that was asked for. Of a call that failed nothing was kept, except when the
// connection broke during the commit. One that others are in the way of fails after [CallTime]. A schema whose tables are newer than
// this package is refused by [New].
package recordstore
