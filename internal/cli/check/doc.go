// Package check has the findings of the doctors: what was checked, the result, and what to do.
//
// # Concurrency
//
// [Run] makes all checks at the same time.
//
// # Errors
//
// A failure is a finding, and no error.
package check
