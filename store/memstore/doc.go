// Package memstore keeps a mailbox in memory, for tests and for programs whose work
// may end with them. It is the reference for the stores that last.
//
// # Concurrency
//
// A [Store] is safe for concurrent use. It starts no goroutine and needs no Close.
// Mailboxes that share one behave like processes that share a database.
//
// # Errors
//
// mailbox.ErrExists says that an id belongs to another thread, mailbox.ErrConflict that
// messages do not follow the log. A context that is over gives its error.
package memstore
