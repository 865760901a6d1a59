// Package guest speaks the ABI with one loaded module: it asks the module to
// describe itself, agrees on a contract version and an encoding, checks the
// operator's config against the schema that the module gave, and from then on
// encodes what goes in and decodes what comes out. plugins and summarizers
// build on it; it knows neither phases nor compaction.
//
// [Guest.CheckGrants] compares what a module asks for with what the operator granted,
// and a [Live] is the guest of a module that is swapped while it is in use.
//
// # Messages
//
// A run shows the same messages at every step, so a Guest that speaks MessagePack
// keeps their encodings, at most 8 MiB of them, and uses one for a message that is
// equal in every field. The messages themselves stay in memory as long, so a Guest
// holds up to twice that. For JSON nothing is kept: decoding it costs the guest far
// more than encoding it costs the host. Where a hook asks for it (LazyMessages) an event goes out with
// the index of its messages alone, and the module reads of the encodings what it wants.
//
// # Concurrency
//
// A [Guest] is safe for concurrent use, as far as its [Caller] is, and so is a [Live].
// The module belongs to its loader: neither has a Close.
//
// # Errors
//
// Errors name the module and a hint. [ErrNoDescribe], [ErrVersion],
// [ErrDescription], [ErrConfig], [ErrNotGranted] and [ErrDecode] can be distinguished with
// errors.Is. Errors of the Caller are passed on wrapped.
package guest
