// Package mortise is the Go SDK for Mortise guests: the types of the contract,
// a codec that needs no reflection, and helpers to read configs and arguments.
// A guest imports one of the packages plugin, summarizer and admission,
// registers itself from init and is built with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w' -o guest.wasm .
//
// The same code builds and is tested natively: each registration package has a
// Call that goes through the codec as a host would.
//
// # Nothing stays
//
// A guest keeps nothing between calls. Its memory may be set back, or another
// instance may get the next call. State arrives in [Event.State] and goes back
// in [Reply.Updates].
//
// # Strings
//
// Input is copied once and every decoded string is a part of that copy. Strings
// stay valid, but one kept string keeps the whole input in memory.
//
// # Concurrency
//
// A guest is called by one caller at a time. [Encoder] and [Decoder] are not
// safe for concurrent use.
//
// # Errors
//
// [Unmarshal] returns a [*DecodeError], which says what is wrong and at which
// byte. It never panics, whatever the input. [Marshal] refuses values that the
// contract does not know: see [ErrValue], [ErrNumber] and [ErrDepth].
package mortise
