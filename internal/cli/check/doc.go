// Package check has the findings of the doctors: what was looked at, what came of it, and what to do.
//
// # Concurrency
//
// [Run] makes all checks at the same time.
//
// # Errors
//
// A failure is a finding, and no error.
package check
