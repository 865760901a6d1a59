// Package memstore keeps threads in memory, for tests and for programs whose work may end with them. What it does is the specification of
// the other stores: read store/internal/state.
//
// # Concurrency
//
// A [Store] is safe for concurrent use. It starts no goroutine and needs no Close. Views that share one behave like processes that share
// a database.
//
// # Errors
//
// They are those of package store. A context that is over gives its error.
package memstore
