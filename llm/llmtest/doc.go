// Package llmtest is the contract of a provider: what an [llm.Model] does with a server
// that is as strict as the vendor's. A provider's test calls [TestModel], once for each API
// that it speaks, and checks for leaked goroutines in its TestMain.
//
// # Order of deltas
//
// A [llm.Streamer] emits an answer block by block, in the order of the provider:
//
//	thinking    reasoning..., then signature if the provider signs; signature alone if there is no text
//	text        text...
//	call        call_start, call_arguments..., block_stop
//
// A block ends with its block_stop, or where the next one begins; a call always has its
// block_stop. Texts are not empty, except that the arguments of a call may be nothing at
// all. Usage may come at any time and more than once: the last value of each field counts.
// Stop comes once, after usage, and nothing comes behind it. An answer that breaks off has no stop.
//
// # Concurrency
//
// Subtests run in parallel, each with a server of its own.
//
// # Errors
//
// A breach is a failed test. What a provider lacks is declared in [Options], and its
// subtests are skipped by name.
package llmtest
