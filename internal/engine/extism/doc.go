// Package extism runs guests on github.com/extism/go-sdk, which the native engine is compared with.
//
// # Concurrency
//
// The engine and a program are safe for concurrent use. An instance runs one call at a time.
//
// # Errors
//
// They are those of package engine.
package extism
