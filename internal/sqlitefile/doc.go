// Package sqlitefile opens SQLite files that only their owner can use, and waits for other processes that have one locked.
//
// # Concurrency
//
// Its functions are safe for concurrent use.
//
// # Errors
//
// They name the file. A context that ends while another process has the lock gives its cause.
package sqlitefile
