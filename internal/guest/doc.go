// Package guest speaks the ABI with one loaded module: it asks the module to
// describe itself, agrees on a contract version and an encoding, checks the
// operator's config against the schema that the module gave, and from then on
// encodes what goes in and decodes what comes out. plugins and summarizers
// build on it; it knows neither phases nor compaction.
//
// # Concurrency
//
// A [Guest] is immutable after [Open] and safe for concurrent use, as far as
// its [Caller] is. The module belongs to whoever loaded it: a Guest has no Close.
//
// # Errors
//
// Errors name the module and the mend. [ErrNoDescribe], [ErrVersion],
// [ErrDescription], [ErrConfig] and [ErrDecode] can be told apart with
// errors.Is. Errors of the Caller are passed on wrapped.
package guest
