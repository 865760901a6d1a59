// Package money accounts for what requests to a model cost, and for what they would have cost otherwise. One machine
// that follows the published rules of prompt caches runs over what was sent and over what the client had sent without
// the proxy; the provider's own counts show how far it can be trusted.
//
// # Concurrency
//
// An [Account] belongs to one goroutine at a time.
//
// # Errors
//
// There are none: a saving that the machine cannot account for is unknown.
package money
