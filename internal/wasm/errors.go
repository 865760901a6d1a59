package wasm

import (
	"errors"
	"fmt"
)

// Kinds of problems, for errors.Is.
var (
	// ErrMagic means that the bytes are not WebAssembly at all.
	ErrMagic = errors.New("not a WebAssembly binary")
	// ErrComponent means that the bytes are a component, not a core module.
	ErrComponent = errors.New("a WebAssembly component, not a core module")
	// ErrVersion means a version or layer of the format that this parser does not know.
	ErrVersion = errors.New("unknown version of the WebAssembly format")
	// ErrTruncated means that the bytes end too early.
	ErrTruncated = errors.New("truncated")
	// ErrUnsupported means a feature that this package does not read.
	ErrUnsupported = errors.New("unsupported feature")
	// ErrLimit means more pieces of a kind than a module may have. Detail continues a sentence that begins with "has".
	ErrLimit = errors.New("exceeds a limit")
	// ErrMalformed means anything else that breaks the format.
	ErrMalformed = errors.New("malformed")
)

// ParseError describes what is wrong with a binary, and where.
type ParseError struct {
	// Offset counts bytes from the beginning of the binary.
	Offset int
	// Detail is what was read at Offset. It never holds text of the binary.
	Detail string
	// Err is one of the kinds of this package.
	Err error
}

// Error implements error.
func (e *ParseError) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("wasm: offset %d: %v", e.Offset, e.Err)
	}
	return fmt.Sprintf("wasm: offset %d: %v: %s", e.Offset, e.Err, e.Detail)
}

// Unwrap returns the kind of the problem.
func (e *ParseError) Unwrap() error { return e.Err }
