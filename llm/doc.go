// Package llm is how the runtime asks a model: one interface, one request and
// one error type, and a [Client] that asks until there is an answer. Providers live
// in packages below it; llm/replay answers from a recorded session.
//
// A [Model] makes one attempt. What to do when it fails is decided here, once for
// all providers: retries with back-off, fallback models, a circuit breaker, the taking
// up of a stream that broke off, and the continuation of an answer that was cut
// at the output limit. Text that was paid for is never thrown away: what came before a
// break is the beginning of the answer.
//
// # Concurrency
//
// Values are plain data and read-only once handed on. A [Model] says itself
// whether it is safe for concurrent use. [Client] and [Breaker] are. A Client calls
// the model on a goroutine of its own and waits for it; only a model that ignores its
// context for longer than ClientConfig.Grace is left behind.
//
// # Errors
//
// A Model returns *[Error], whose [Kind] tells if asking again may help.
// [Client.Ask] returns the last of them, or the error of its context, and with it
// what had come of the answer. A model that panicked is [ErrPanic].
package llm
