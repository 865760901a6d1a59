// Package acp serves a runtime to one client of the Agent Client Protocol, such as an editor, over a pair of streams. A session
// is a thread, and a prompt is a run. docs/frontends.md is for its users.
//
// # Concurrency
//
// [Serve] runs until its input ends, and then has closed what the sessions used. Requests of the client are handled concurrently;
// those of one session exclude each other.
//
// # Errors
//
// What a client does wrong is an error in its response, and is not logged. [Serve] fails when the input cannot be read.
package acp
