// Package inboxtest is the contract suite of an inbox.Inbox over a store.Store.
//
// # Concurrency
//
// The suite opens one store per subtest and uses it from many goroutines.
//
// # Errors
//
// It reports through the testing.T that it was given.
package inboxtest
