// Package schematest has schemas of PostgreSQL for the tests of what is kept in them.
//
// # Concurrency
//
// Everything is safe for concurrent use. The test closes what [Server.Open] opens.
//
// # Errors
//
// What goes wrong is an error of the test.
package schematest
