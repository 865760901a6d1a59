// Package log lets guests write to the logger of their host.
//
// # Concurrency
//
// A Grant may be used by any number of hosts.
//
// # Errors
//
// There are none.
package log
