// Package storetest has the contract of package store as tests: what every implementation must do, also when two processes use it at once.
//
// [TestStore] runs the contract, [TestEvents] that of store.Events, [TestModel] random batches against memstore, and [TestCrash] kills
// processes that write.
package storetest
