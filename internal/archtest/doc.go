// Package archtest keeps the arrows between packages. It holds no code; its
// test parses every file of the module and fails on an import that the table
// does not allow.
//
// # Concurrency
//
// Nothing to say: there is nothing to call.
//
// # Errors
//
// A forbidden import is a failing test that names the file, the import and the
// table to change, with a reason in RATIONALE.md.
package archtest
