// Package sqlitestore keeps a mailbox in one SQLite file, without cgo. It is what an
// operator starts with: one binary, one file, as many processes as there are on the machine.
//
// What was acknowledged is on the disk: the file is in WAL mode with synchronous FULL. Writes that come
// together share a flush. The file has to be on a local disk, since SQLite's locks
// do not hold on network file systems.
//
// Events of dispatches (mailbox.EventLog) are in the file, too; a process that waits for those of others looks for them some ten times a second.
//
// The tables are in schema/, one file for each version.
//
// # Concurrency
//
// A [Store] is safe for concurrent use, and a file for several stores, in one process or in
// many. A store writes one group at a time, on the goroutine of whoever asks while nobody else does, or on one of its
// own, which Close ends, and reads on other connections. Commands to runs under way go to other processes through the file. A process
// looks for them while it carries something out. New work of other processes is found by time (mailbox.Config.Poll), since
// a file wakes nobody.
//
// # Errors
//
// mailbox.ErrExists and mailbox.ErrConflict are as the interface says. A file of another program, or of
// a newer version of this one, is refused by [Open]. Calls after Close fail.
package sqlitestore
