// Package threadtest is the contract of package thread on a store, as tests: conversations, decision records, and kills of processes that
// write both.
//
// # Concurrency
//
// Each case has a store of its own, and cases run in parallel; some use two handles from many goroutines.
//
// # Errors
//
// They are failures of the test.
package threadtest
