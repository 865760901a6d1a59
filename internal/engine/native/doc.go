// Package native runs metered guests on wazero: fuel, deadlines, fresh state from a template for each call.
//
// # Concurrency
//
// The engine and a program are safe for concurrent use. An instance runs one call at a time.
//
// # Errors
//
// They are those of package engine.
package native
