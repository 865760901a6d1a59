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
// Every decoded string is a part of the input, whose memory is not used for
// anything else. Strings stay valid, but one kept string keeps the whole input in
// memory. [Unmarshal] copies its input first, [UnmarshalString] does not.
//
// # Messages
//
// The messages of an [Event] are read when they are asked for: see [Messages]. A
// hook that looks at the roles of a long conversation decodes no content. With
// [Hook.LazyMessages] they do not even enter the guest: the host keeps them, and each
// is read from there when it is asked for. A hook that reads all of them is better
// without.
//
// # Concurrency
//
// A guest is called by one caller at a time. [Encoder] and [Decoder] are not
// safe for concurrent use.
//
// # Errors
//
// [Unmarshal] returns a [*DecodeError], which describes what is wrong and at which
// byte. It never panics, whatever the input. What is wrong inside of a message of an
// event is found when that part is read: see [Messages.Err]. [Marshal] refuses values that the
// contract does not know: see [ErrValue], [ErrNumber] and [ErrDepth].
package mortise
