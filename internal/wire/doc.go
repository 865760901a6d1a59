// Package wire encodes and decodes the values of package abi on the host's side.
// It is the only importer of a MessagePack library.
//
// MessagePack values are written the way every SDK writes them: fields in the
// order of the struct, keys of dynamic maps sorted, integers in their shortest
// form, so that equal values give equal bytes. Field names and omitempty follow
// the json tags and mean what they mean to encoding/json: a dynamic value is
// omitted when it is nil, not when it is 0, false or "".
//
// # Hostile input
//
// A guest may answer anything. Before a byte is decoded a scan checks every
// declared count and length against the bytes that remain, the nesting
// ([MaxDepth]), the number of values ([MaxValues]), that keys are strings, that
// floats are finite and that nothing follows. Extension types are refused, and
// so are keys that come twice in one map. Text that is not UTF-8 is repaired with
// U+FFFD, because a guest in another language that cuts a text in the middle of
// a character is not worth a failed run.
//
// # Numbers
//
// In a field of type any an integer is an int64 and everything else a float64;
// an integer beyond int64 becomes a float64. In JSON a number is an integer when
// it is written without a fraction and an exponent, so a float64 without a
// fraction comes back from a JSON guest as an int64. An integer field also takes
// a float without a fraction, and a float field an integer.
//
// # Concurrency
//
// Everything is safe for concurrent use.
//
// # Errors
//
// Unmarshal returns a [*DecodeError], which names the byte or the field and what
// is wrong there, and nothing of the content. Marshal fails for values that the
// contract does not know, with [ErrValue].
package wire
