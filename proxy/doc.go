// Package proxy is an HTTP server between any agent and its model provider. It forwards Anthropic Messages, OpenAI
// Responses and Chat Completions, and everything else that it does not know, byte for byte; with plugins it fires the
// phases of a run on this traffic, and with a compaction policy it replaces old parts of a conversation by summaries
// that were made in the background.
//
// When nothing acts, the bytes of requests and answers are those that came, streamed as they come. When something acts,
// it is a splice into them. Whatever goes wrong in the proxy, the original request goes to the provider, unless a plugin
// refused it whose failure policy is to refuse.
//
// # Concurrency
//
// A [Server] is safe for concurrent use. Compactions run in goroutines for which [Server.Close] waits.
//
// # Errors
//
// [New] names the field that is wrong. Errors in traffic are answers in the shape of the protocol, and are counted.
package proxy
