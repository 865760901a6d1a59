// Package wording words compactions, for the commands that print them.
//
// # Concurrency
//
// Everything is safe for concurrent use.
//
// # Errors
//
// There are none.
package wording
