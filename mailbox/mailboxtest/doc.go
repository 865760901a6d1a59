// Package mailboxtest is the suite of mailbox on a store: [TestMailbox] is its contract, clause by clause, [TestModel] plays random schedules against a model that was written apart, and [TestCrash] kills processes.
//
// Each opens new, empty stores; open registers what is to be closed with t.Cleanup. [Faulty] is a store that fails on demand. A clause is
// here if a store could break it; what a mailbox does whatever the store is, tests of package mailbox show on memstore.
//
// # Concurrency
//
// The cases run in parallel, each on its own store.
//
// # Errors
//
// A broken contract fails the test that names it.
package mailboxtest
