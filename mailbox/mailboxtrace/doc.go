// Package mailboxtrace makes OpenTelemetry spans of what a mailbox does. A request takes its trace along, see
// [Inject]: the run is part of it, whichever process carries it out.
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
// [New] needs a provider. Errors of operations and runs are the status of their spans.
package mailboxtrace
