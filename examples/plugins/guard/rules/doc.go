// Package rules judges the commands of a shell script by named rules.
//
// # Concurrency
//
// A [Judge] does not change after [New]; use it from several goroutines.
//
// # Errors
//
// There are none: a script that is too long to read is a finding.
package rules
