// Package schema checks values against a JSON Schema that a stranger wrote: the author of a
// tool, or of a plugin. References to other documents are refused, so that a schema cannot
// make the host read files or ask the network.
//
// # Concurrency
//
// A [Schema] is safe for concurrent use.
//
// # Errors
//
// Errors are one line each, with the place of the fault in the value or the schema.
package schema
