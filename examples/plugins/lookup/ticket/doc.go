// Package ticket finds ticket numbers in text and makes text of an answer fit to be
// shown to a model. It is plain Go, so that it can be tested natively.
//
// # Concurrency
//
// The functions keep nothing and may be used by any number of goroutines.
//
// # Errors
//
// The functions have none.
package ticket
