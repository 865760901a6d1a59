// Package aguitest checks streams of the AG-UI protocol.
//
// # Concurrency
//
// Functions are safe for concurrent use.
//
// # Errors
//
// [Verify] fails at the first event that breaks a rule, and names it.
package aguitest
