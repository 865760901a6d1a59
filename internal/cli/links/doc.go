// Package links has all providers, stores and engines of the command mortise. A program that needs fewer names its own.
//
// # Concurrency
//
// Its functions are safe for concurrent use.
//
// # Errors
//
// They are those of the packages that are linked.
package links
