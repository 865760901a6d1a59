// Package sqlitefile opens SQLite files that only their owner can use, and waits for other processes and connections that have one locked.
//
// # Concurrency
//
// Its functions are safe for concurrent use.
//
// # Errors
//
// Those of [Create] name the file, those of [Retry] do not. A context that ends while the file is locked gives its cause.
package sqlitefile
