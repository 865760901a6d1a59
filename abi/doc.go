// Package abi is the contract between Mortise and its guests: names, plain
// structs and a version. It imports nothing, so that a host, an SDK generator
// and a reader can all take it as it is. The codec lives in internal/wire.
//
// Every value travels as a MessagePack map with string keys, the keys being the
// json tags below, or as JSON when the guest's describe output starts with "{".
// Both sides ignore fields that they do not know. A new field is a minor change;
// removing or changing one is a new [Version].
//
// # Absent is not empty
//
// A nil pointer or an absent field means "no opinion". An empty value is an
// answer. Fields for which the difference matters are pointers.
//
// # Dynamic values
//
// Fields of type any hold nil, bool, int64, float64, string, []byte, []any or
// map[string]any, and nothing else. JSON has no []byte; a JSON guest sees
// base64 text.
//
// # Concurrency
//
// Values are plain data. Their maker may change them until they are passed on;
// after that it is read-only.
//
// # Errors
//
// The package has none. A guest reports failure with a nonzero return code and
// a text given to error_set, see [ExportOnPhase].
package abi
