// Package pgstore keeps a mailbox in PostgreSQL, for any number of processes on any number of machines. It is
// tested with version 15.
//
// Each transition is one transaction. One of a thread that this process wrote last is one statement, which is not made if the row of the
// thread has changed, and so is the first one of a thread, which is not made if the row is there; others lock that row and take two round trips. What
// is due is found by an index, whatever else is queued. The tables are in a schema of their own
// ([Config.Schema]), which [Open] makes and migrates under a lock; a program that is older than the
// schema does not start.
//
// [Store] has mailbox.Signals and mailbox.Live, both on LISTEN and NOTIFY: they need connections to the server itself,
// or through a pooler in session mode that passes settings on. A notice that is lost costs time and nothing else. Signals
// of some milliseconds travel as one notice, which every process gets; their receipts do nothing. Commands to runs
// wait in an unlogged table until their listener takes them. Events of dispatches (mailbox.EventLog) are in unlogged tables, too: a
// crash of the server may empty them.
//
// The packages below keep the outbox, sessions and decision records in the same schema.
//
// # Concurrency
//
// A [Store] is safe for concurrent use. It has a pool of connections, a connection that listens, and one goroutine for
// each of listening and telling; Close ends them.
//
// # Errors
//
// mailbox.ErrExists says that an id or a dedupe key is taken, mailbox.ErrConflict that
// messages do not follow the log. Deadlocks, lost races for a new thread, and connections that broke before anything was
// written are tried again, a few times. A connection that breaks during a commit leaves the outcome open. No error or log has
// the connection string, its password, or a payload.
package pgstore
