// Package recordtest is the contract of a record.Store, as a test. A backend passes it or
// is none.
//
// # Concurrency
//
// Each case of [TestStore] has a store of its own, and cases run beside each other; some
// use several handles from many goroutines.
//
// # Errors
//
// What a store does wrong is an error of the test.
package recordtest
