// Package outboxstore keeps an outbox in the SQLite file of a mailbox, so that a program has one
// file, and both share their flushes.
//
// # Concurrency
//
// A [Store] is safe for concurrent use. It has no Close: whoever opened the sqlitestore.Store
// closes that, after the Outbox.
//
// # Errors
//
// An error means that nothing was kept, except when it came from the disk: ask again then. A
// file whose tables are newer than this package is refused by [New].
package outboxstore
