// Package testskip skips tests that need what is not there, and makes that be seen: make test and make check list which
// were skipped, and why.
//
// # Concurrency
//
// [Missing] and [Skip] are called from the goroutine of their test, as testing.TB.Skip is.
//
// # Errors
//
// What may not be missing is an error of the test.
package testskip
