// Package pgstore keeps threads in PostgreSQL, for any number of processes on any number of machines. It is tested with version 15 and
// needs version 13.
//
// Each call is one statement: a function of the database does the rest, in one transaction, and finds all by indexes. Batches that wait at
// the same time in a process share a call and its commit; one that has to wait for another transaction does so alone. The tables and
// functions are in a schema of their own ([Config.Schema]), which [Open] creates and migrates. A role that does not own them needs USAGE of
// the schema and of its sequence, and SELECT, INSERT, UPDATE and DELETE on its tables.
//
// Processes notify each other by NOTIFY. PostgreSQL commits the transactions of a database that notify one after the other.
//
// # Poolers
//
// A pooler such as PgBouncer works in transaction mode. Open detects it. Then no statement is prepared, the client alone enforces
// Config.StatementTimeout, and watches receive every half second, whatever happened, since LISTEN needs a session.
//
// # Concurrency
//
// A [Store] is safe for concurrent use. It has a pool of connections, and a connection and a goroutine for notifications; Close ends them.
//
// # Errors
//
// Besides those of package store: an fs.ErrNotExist if Config.Existing finds no tables. Deadlocks and serialization failures are retried a
// few times. An error of Apply after which the connection is gone leaves the outcome open. No error or log has the password.
package pgstore
