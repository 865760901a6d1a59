// Package agentruntest proves that a run of an agent survives the death of its process on a
// store.Store: [TestKilled] kills real processes inside the tools of a step, [TestCommits] has the store
// fail at each batch of a run. A store that keeps the contract of mailboxtest passes both.
//
// # Concurrency
//
// The cases run in parallel, each on its own store.
//
// # Errors
//
// What is wrong with a run is an error of the test.
package agentruntest
