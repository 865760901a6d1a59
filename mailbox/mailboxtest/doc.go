// Package mailboxtest proves that a store.Store keeps its contract.
//
//	func TestStore(t *testing.T) {
//		TestStore(t, func(t *testing.T) store.Store { ... })
//	}
//
// [TestStore] opens a new, empty store for each case; open registers what is to be closed with t.Cleanup. [Faulty] is
// a store that fails on demand.
//
// # Concurrency
//
// The cases run in parallel, each on its own store.
//
// # Errors
//
// A broken contract fails the test that names it.
package mailboxtest
