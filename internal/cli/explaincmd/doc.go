// Package explaincmd has mortise explain, which prints the decision record of a run.
//
// # Concurrency
//
// A command runs once in a process.
//
// # Errors
//
// A run that is not there is a wrong command line, a record that cannot be read is not.
package explaincmd
