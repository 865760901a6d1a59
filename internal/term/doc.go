// Package term writes text for terminals and pipes: tables, JSON, a live line of progress, and
// foreign text without what could drive a terminal.
//
// # Concurrency
//
// A [Progress] is safe for concurrent use, a [Table] is not.
//
// # Errors
//
// A table remembers the first failure to write, and returns it at its end.
package term
