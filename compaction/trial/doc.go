// Package trial tries a compaction policy before it replaces another one: on the latest requests that the
// running policy answered, which a [Recorder] keeps. [Summaries] compares what of the source survives in the
// summaries of both, and [Decisions] checks an admission policy.
//
// # Concurrency
//
// A Recorder is safe for concurrent use. Summaries and Decisions call the policies one request after the other.
//
// # Errors
//
// A policy that must not replace the other one is a [*Refusal], with the request and the reason. Other errors
// are those of the context.
package trial
