// Package pgtest gives tests a PostgreSQL of their own: a private server in a temporary folder, which listens on a
// Unix socket, and if a test asks for it on 127.0.0.1 ([Loopback]), made from the programs that are installed (Debian: apt-get install postgresql).
// No service needs to run. PostgreSQL refuses to run as root; a test that does runs it as another user.
//
// MORTISE_TEST_POSTGRES names a server to use instead, by URL. Tests that kill their server always make one.
//
// Where there is no PostgreSQL tests are skipped, and say so; with CI=true they fail.
//
// # Concurrency
//
// A [Server] may be used from several goroutines, but stopped and started from one.
//
// # Errors
//
// They name the program that failed, with what it wrote.
package pgtest
