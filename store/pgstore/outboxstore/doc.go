// Package outboxstore keeps an outbox in the PostgreSQL schema of a mailbox.
//
// # Concurrency
//
// A [Store] is safe for concurrent use. It has no Close: whoever opened the pgstore.Store closes that, after the Outbox. One Outbox at a
// time uses a schema. Entries come true in the order of their numbers, by whomever they are appended.
//
// # Errors
//
// An error means that nothing was kept, except when the connection broke during the commit: ask again then. A schema whose tables
// are newer than this package is refused by [New].
package outboxstore
