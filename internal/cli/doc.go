// Package cli is the command line of mortise: it finds the command and turns its error into a sentence
// and an exit code. Each group of commands is a package below it; what a config says is package config,
// what it becomes package program.
//
// # Concurrency
//
// One [Main] runs at a time in a process; it starts goroutines and waits for
// them before it returns.
//
// # Errors
//
// Every failure is one sentence on standard error that names the object and the
// hint, and an exit code of package exit.
package cli
