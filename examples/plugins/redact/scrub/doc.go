// Package scrub finds credentials in text and replaces them.
//
// Every rule looks at a bounded stretch of text around the place where it is, so
// the work grows with the length of the text, whatever the text says.
//
// # Concurrency
//
// A [Scrubber] does not change after [New]; use it from several goroutines.
//
// # Errors
//
// There are none. What is not recognised stays as it is.
package scrub
