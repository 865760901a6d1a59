// Package testskip skips tests that need what is not there.
//
// # Concurrency
//
// [Missing] is called from the goroutine of its test, as testing.TB.Skip is.
//
// # Errors
//
// What may not be missing is an error of the test.
package testskip
