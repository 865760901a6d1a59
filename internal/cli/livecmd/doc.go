// Package livecmd runs a prompt for mortise run: it chooses the model and the agent, shows the run on the terminal, and
// asks about calls that need an approval.
//
// # Concurrency
//
// [Run] runs once in a process; what it prints comes from several goroutines.
//
// # Errors
//
// Errors have the exit codes of mortise run.
package livecmd
