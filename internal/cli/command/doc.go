// Package command is what all commands share: their streams, their flags, and the words for wrong
// command lines.
//
// # Concurrency
//
// A command line is parsed by one goroutine.
//
// # Errors
//
// An error names the command and what it takes.
package command
