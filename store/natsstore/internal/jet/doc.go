// Package jet keeps records in JetStream streams, for the stores that share a connection: a record is one message, or
// several when it is long, and is found by its subject or by its number.
//
// # Concurrency
//
// Everything is safe for concurrent use. A question that was asked twice may be under way for Link.Wait when its call has
// returned. Nothing has a Close: the connection belongs to whoever made it.
//
// # Errors
//
// Reads are repeated for Link.Patience while no server can answer; writes never, since only the caller knows what a
// second one would do. [Transient] says that trying again may help, [Overtaken] that somebody else has written first,
// [ErrGone] that a record was dropped while it was read.
package jet
