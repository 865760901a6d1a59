// Package role lets guests ask an llm.Model: [Answer] makes of one what model.Role needs.
// An llm.Client with retries, fallback models and a breaker is an llm.Model, too.
//
// # Concurrency
//
// What [Answer] returns is safe for concurrent use, as far as the model is.
//
// # Errors
//
// Content that a provider filtered is a refusal, not an error. Other errors are those of the
// model; the host tells a guest their kind and nothing of their text.
package role
