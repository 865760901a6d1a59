package engine

// ValueType is the type of a parameter or a result of a [Function].
type ValueType byte

// Value types, with the numbers of the WebAssembly binary format.
const (
	I32 ValueType = 0x7f
	I64 ValueType = 0x7e
	F32 ValueType = 0x7d
	F64 ValueType = 0x7c
)
