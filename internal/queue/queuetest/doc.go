// Package queuetest has the tests of the rules of package queue, for any store: the contract, and schedules by chance that are compared with a
// model which was written apart.
//
// # Concurrency
//
// The cases open stores of their own and run in parallel.
//
// # Errors
//
// They are failures of the test.
package queuetest
