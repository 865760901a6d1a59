// Package mailboxtrace makes OpenTelemetry spans of what a mailbox does. A request takes its trace along, see
// [Inject]: the run is part of it, whichever process executes it.
//
// An operation on the store has a span when it is part of a trace; what the mailbox does by itself, such as looking for
// what is due, has none. Spans have the ids of thread, dispatch and run, and no payload.
//
// # Concurrency
//
// A [Tracer] is safe for concurrent use.
//
// # Errors
//
// [New] needs a provider. A span whose operation or run failed has the status error, and error.type has its kind. The text of the error, which
// may quote what a user wrote, is not in the span.
package mailboxtrace
