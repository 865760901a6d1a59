// Package outboxtest is the contract suite of an outbox.Store. A backend passes it
// or is none.
//
// # Concurrency
//
// The suite opens one store per subtest and uses it from many goroutines.
//
// # Errors
//
// It reports through the testing.T that it was given.
package outboxtest
