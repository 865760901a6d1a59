// Package sqlitestore keeps a store in one SQLite file, without cgo.
//
// An operator starts with it: one binary, one file, and any number of processes on the same machine. An inbox in it is for one of them at
// a time: `mortise serve` refuses a file that another one has. The file must be on a local disk, because SQLite's locks do not hold on network
// file systems.
//
// Durability: the file is in WAL mode with synchronous=FULL. Apply returns after the flush of its transaction. Batches that are applied
// concurrently share one transaction. Events are not flushed: a crash of the machine may lose the last ones, a crash of the process does
// not.
//
// Space: what is deleted is given back in the background, in steps of some milliseconds, until an eighth of the file is free, and the
// write-ahead log is truncated. A file that an earlier build made stays as large as it is; VACUUM with auto_vacuum = INCREMENTAL changes it.
//
// The tables are in schema/, one file for each version.
//
// # Concurrency
//
// A [Store] is safe for concurrent use. One of the callers that wait writes for all of them. A goroutine polls for what other processes
// wrote while there is a Watch or a waiting ReadEvents. Close ends it.
//
// # Errors
//
// store.ErrConflict, store.ErrExists and store.ErrInvalid are as package store defines them. [ErrClosed] reports a call after Close,
// [ErrMoved] a file that was moved, replaced or removed while it was open. Open refuses files of other programs, of older and of newer
// versions of Mortise, and files that other users of the machine can read, and does not change them. Other errors are SQLite's.
package sqlitestore
