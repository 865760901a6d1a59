package sqlcore

import "math"

// Bytes returns bytes that are not NULL.
func Bytes(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Number returns a number as a column has it. No revision, log or stream gets as far as the largest.
func Number(n uint64) int64 { return int64(min(n, math.MaxInt64)) } //nolint:gosec // bounded
