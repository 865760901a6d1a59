// Package llm is how the runtime asks a model: one interface, one request and
// one error type. Providers live in packages below it; llm/replay answers from
// a recorded session.
//
// # Concurrency
//
// Values are plain data and read-only once handed on. A [Model] says itself
// whether it is safe for concurrent use.
//
// # Errors
//
// A Model returns *[Error], whose [Kind] says whether asking again may help.
package llm
