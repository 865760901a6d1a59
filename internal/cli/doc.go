// Package cli is the mortise command: it reads the config, wires the packages
// together, runs, shows progress and prints the report. It is the only place
// that wires, besides what embedders write themselves.
//
// # Concurrency
//
// One [Main] runs at a time in a process; it starts goroutines and waits for
// them before it returns.
//
// # Errors
//
// Every failure is one sentence on standard error that names the object and the
// hint, and an exit code of [ExitCode].
package cli
