// Package sqlcore has what the stores on SQL databases share: how changes that wait share a transaction, which versions of a schema a
// program may use, and values as columns have them. The statements are not here: sqlitestore runs many small ones, pgstore one call for
// each round trip.
//
// # Concurrency
//
// A [Queue] is safe for concurrent use. It starts no goroutine: callers run the changes of others.
//
// # Errors
//
// [ErrClosed] is a queue that was closed. [Absent] is an fs.ErrNotExist.
package sqlcore
