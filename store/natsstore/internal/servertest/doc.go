// Package servertest has NATS servers for the tests of what is kept beside a mailbox: in this process, on loopback, with JetStream on
// disk.
//
// # Concurrency
//
// Everything is safe for concurrent use. [Main] ends the server that [URL] starts, the test those of a [Cluster].
//
// # Errors
//
// What goes wrong is an error of the test.
package servertest
