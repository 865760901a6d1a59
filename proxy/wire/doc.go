// Package wire reads and edits the bodies of three model APIs as raw JSON: Anthropic Messages, OpenAI Responses and
// OpenAI Chat Completions. It finds the places of messages, blocks and tools in the bytes, so that an edit is a splice
// and all that it does not know stays as it was. It splits event streams in the same way.
//
// A [Request] has the fields of a body, by their places. A [Stream] follows the events of an answer. [Apply] makes splices.
//
// # Concurrency
//
// Functions may be called concurrently. A Request may be read concurrently; a Stream and a [Splitter] belong to one
// goroutine.
//
// # Errors
//
// [ErrShape] is a body that is not what the protocol has: the caller forwards it as it is.
package wire
