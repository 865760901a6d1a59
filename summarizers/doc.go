// Package summarizers makes guests into compaction policies: a [Policy] wraps a
// module that answers summarize, admit, or both, and implements
// compaction.Summarizer and compaction.Admitter. [Policy.Swap] puts another binary in
// its place while it is in use, after a trial on recorded requests. A [Chain] asks another summarizer when one fails.
//
// Package bundled, below this one, embeds the bundled policies.
//
// # Concurrency
//
// A [Policy] is safe for concurrent use, as far as its module is. The module
// belongs to its loader; a Policy has no Close.
//
// # Errors
//
// Errors of [Open] name the module and a hint. Errors of a call are those of
// the module (it said no, it broke) or a decoding error; compaction decides
// what they mean for a run.
package summarizers
