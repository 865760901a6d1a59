// Package hosttest holds the contract suites of what an embedder may give to a
// host: [TestKV] for a [host.KV].
//
// # Concurrency
//
// The suites run their tests in parallel, and some of them use a store from many
// goroutines at once.
//
// # Errors
//
// What a store does wrong fails the test, with what was expected.
package hosttest
