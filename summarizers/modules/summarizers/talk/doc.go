// Package talk is what summarizer policies share: how long a summary may be, which messages
// are a tool's output, and how texts and arguments are shortened.
//
// # Concurrency
//
// All functions are pure.
//
// # Errors
//
// There are none.
package talk
