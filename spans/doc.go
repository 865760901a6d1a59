// Package spans traces what a Mortise runtime does with OpenTelemetry, by the semantic conventions for generative AI: a span
// "invoke_agent AGENT" for each execution of a run, and inside of it "chat MODEL" for each request to a model, "execute_tool TOOL"
// for each tool call, and "compaction" for each compaction that the run started. A request that is repeated has a span for
// each attempt. Spans have ids, names, counts and classes of errors: nothing that a model, a tool or a user wrote.
//
// With mailboxtrace as an observer of the mailbox, invoke_agent is a child of its span "mailbox run", and so of the trace
// that the request belongs to. A span of a compaction may end after those of its run.
//
// # Concurrency
//
// [Tracer] and [Handler] are safe for concurrent use. They start no goroutine.
//
// # Errors
//
// [New] needs a provider.
package spans
