// Package wasm reads core WebAssembly binaries without running them.
//
// [Parse] decodes what a host needs to know before it compiles a module: types,
// imports, exports, memories, tables, the start function and custom sections.
// Function bodies, constant expressions and segments are kept as bytes and are
// not validated; the engine does that when it compiles.
//
// Every count and length is compared with the bytes that remain before anything
// is allocated, so a few hostile bytes cannot ask for much memory.
//
// The format is described in https://webassembly.github.io/spec/core/binary/.
//
// # Concurrency
//
// A [Module] is not changed after [Parse] returns it and may be read by any
// number of goroutines. It shares the bytes it was parsed from; do not change
// those.
//
// # Errors
//
// [Parse] returns a [*ParseError], which has the place in the binary where the problem
// is and wraps one of [ErrMagic], [ErrComponent], [ErrVersion], [ErrTruncated],
// [ErrUnsupported] and [ErrMalformed].
package wasm
