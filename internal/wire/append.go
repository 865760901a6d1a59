package wire

import (
	"encoding/binary"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// The Append functions write MessagePack, as Marshal does, for a caller that knows the
// shape of its value and puts parts together that are encoded already.

// AppendMap starts a map of n entries: n times a key and a value.
func AppendMap(b []byte, n int) []byte {
	if n < 16 {
		return append(b, msgpcode.FixedMapLow|byte(n))
	}
	return appendLength(b, n, 0, msgpcode.Map16)
}

// AppendArray starts an array of n elements.
func AppendArray(b []byte, n int) []byte {
	if n < 16 {
		return append(b, msgpcode.FixedArrayLow|byte(n))
	}
	return appendLength(b, n, 0, msgpcode.Array16)
}

// AppendBinary starts a binary value of n bytes.
func AppendBinary(b []byte, n int) []byte { return appendLength(b, n, msgpcode.Bin8, msgpcode.Bin16) }

// AppendString writes a string, repaired where it is not UTF-8.
func AppendString(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return AppendKey(b, s)
}

// AppendKey writes a string that is UTF-8, such as the name of a field.
func AppendKey(b []byte, s string) []byte {
	if n := len(s); n < 32 {
		b = append(b, msgpcode.FixedStrLow|byte(n))
	} else {
		b = appendLength(b, n, msgpcode.Str8, msgpcode.Str16)
	}
	return append(b, s...)
}

// AppendInt writes an integer.
func AppendInt(b []byte, v int64) []byte {
	switch {
	case v >= -32 && v <= math.MaxInt8:
		return append(b, byte(v))
	case v > 0 && v <= math.MaxUint8:
		return append(b, msgpcode.Uint8, byte(v))
	case v > 0 && v <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, msgpcode.Uint16), uint16(v))
	case v > 0 && v <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, msgpcode.Uint32), uint32(v))
	case v > 0:
		return binary.BigEndian.AppendUint64(append(b, msgpcode.Uint64), uint64(v))
	case v >= math.MinInt8:
		return append(b, msgpcode.Int8, byte(v))
	case v >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, msgpcode.Int16), uint16(v))
	case v >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, msgpcode.Int32), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(b, msgpcode.Int64), uint64(v))
}

// appendLength writes a length in the shortest form that there is: of one byte if
// there is a code for that, of two, whose code is given, or of four.
func appendLength(b []byte, n int, code8, code16 byte) []byte {
	switch {
	case n <= math.MaxUint8 && code8 != 0:
		return append(b, code8, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, code16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, code16+1), uint32(n)) //nolint:gosec // no input is that long
}
