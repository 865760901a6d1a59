// Package state has what batches add up to: the cells and logs of threads, and the indexes of all of them. It is the specification of the
// stores: read check.go and apply.go first. memstore is a [State] with a lock; natsstore folds what the servers have into one.
//
// # Concurrency
//
// A [State] has no lock: its owner does.
//
// # Errors
//
// [State.Check] returns those of package store, which name the thread. Nothing else fails.
package state
