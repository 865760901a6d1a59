// Package signals samples what an admission policy wants to know before a
// compaction starts: how much memory is left, and how the model's provider has been
// answering. (How many compactions run already is known to compaction.Limiter.)
//
// Memory comes from the process's control group, version 2 or 1, the kernel's
// figures and the Go runtime's limit, whichever leaves the least. The provider's
// latency and errors are those of the calls that [Sampler.Observe] receives. What is
// not known is absent, and never blocks.
//
// # Concurrency
//
// A [Sampler] is safe for concurrent use and starts no goroutine.
//
// # Errors
//
// [New] names the field that is wrong. Sampling does not fail: what cannot be read
// is not known.
package signals
