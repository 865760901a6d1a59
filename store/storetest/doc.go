// Package storetest has the contract of package store as tests: what every implementation must do, also when two processes use it at once.
//
// [TestStore] runs the contract, [TestEvents] that of store.Events, and [TestModel] random batches against memstore. Package viewtest has
// the suites of what is built on stores, which kill processes.
//
// # Concurrency
//
// Each case opens a store of its own and runs in parallel with the others.
//
// # Errors
//
// They are failures of the test.
package storetest
