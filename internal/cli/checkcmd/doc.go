// Package checkcmd has mortise validate, which checks a config and what it names, and mortise doctor, which also checks
// the machine and the services.
//
// # Concurrency
//
// The checks of the doctor run at the same time.
//
// # Errors
//
// All problems are printed; the error counts them.
package checkcmd
