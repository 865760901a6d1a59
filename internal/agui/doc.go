// Package agui translates the events of package serve into those of the AG-UI protocol, version 1.0, and messages between
// both. docs/frontends.md has the table of names.
//
// # Concurrency
//
// A [Translator] is for one stream, and not safe for concurrent use. Functions are.
//
// # Errors
//
// Nothing here fails but [Messages], on content that a thread cannot hold. An event whose fields do not fit becomes a custom
// event with what is there.
package agui
