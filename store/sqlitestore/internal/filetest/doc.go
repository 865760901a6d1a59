// Package filetest has SQLite files for the tests of what is kept in them.
//
// # Concurrency
//
// Everything is safe for concurrent use. The test closes what [Open] opens.
//
// # Errors
//
// What goes wrong is an error of the test.
package filetest
