// Package storetest is the contract of a compaction.Store, as a test.
//
// # Concurrency
//
// [TestStore] runs its cases one after the other; one of them calls the store from
// several goroutines.
//
// # Errors
//
// What a store does wrong is an error of the test.
package storetest
