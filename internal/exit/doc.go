// Package exit has the words and the code with which the command ends for an error: which
// of the documented exit codes it is, and its text with keys of mortise.yaml in place of fields of Go.
//
// # Concurrency
//
// Everything is safe for concurrent use.
//
// # Errors
//
// [With] gives an error a [Code], [Of] finds it again. Errors that are joined with [Under] are counted
// one by one by [Each].
package exit
