// Package cost decides whether a compaction costs less than it saves over the requests that a conversation is
// expected to continue for. Package rule has the arithmetic, and is a copy of the host's default policy;
// internal/abigen writes it. Here is the config.
//
// # Concurrency
//
// [Decide] is a pure function.
//
// # Errors
//
// There are none: every request has a decision.
package cost
