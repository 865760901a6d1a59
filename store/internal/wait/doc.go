// Package wait has what stores wait for: topics that are notified, and time.
//
// # Concurrency
//
// A [Hub] is safe for concurrent use. It starts no goroutine.
//
// # Errors
//
// They are the causes of contexts that are done.
package wait
