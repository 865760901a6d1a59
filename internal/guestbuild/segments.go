package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
)

// The Go linker writes a data segment for each run of bytes that are not zero: 29,000 in a guest
// of 2.7 MB. Their headers do not compress, and zeros do. So segments that lie close together
// are made one. The memory of an instance is the same.

// maxGap is how many zeros are written to save a segment, in bytes.
const maxGap = 64

const (
	sectionData = 11
	headerSize  = 8
	opI32Const  = 0x41
	opEnd       = 0x0b
)

var errMalformed = errors.New("malformed module")

// tighten rewrites a module in place.
func tighten(path string) error {
	in, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	out, err := mergeData(in)
	if err != nil {
		return fmt.Errorf("data section: %w", err)
	}
	return os.WriteFile(path, out, 0o644)
}

// mergeData joins the data segments of a module. One that has other segments than those of
// memory 0 at a constant offset stays as it is.
func mergeData(in []byte) ([]byte, error) {
	if len(in) < headerSize {
		return nil, errMalformed
	}
	out := bytes.Clone(in[:headerSize])
	for rest := in[headerSize:]; len(rest) > 0; {
		id := rest[0]
		body, next, ok := sized(rest[1:])
		if !ok {
			return nil, errMalformed
		}
		if id == sectionData {
			merged, err := mergeSegments(body)
			if err != nil {
				return nil, err
			}
			body = merged
		}
		out = append(out, id)
		out = binary.AppendUvarint(out, uint64(len(body)))
		out = append(out, body...)
		rest = next
	}
	return out, nil
}

// segment is a part of the memory.
type segment struct {
	offset int64
	data   []byte
}

func mergeSegments(body []byte) ([]byte, error) {
	list, err := readSegments(body)
	if err != nil || list == nil {
		return body, err
	}
	var merged []segment
	var zeros [maxGap]byte
	for _, s := range list {
		if n := len(merged); n > 0 {
			last := &merged[n-1]
			end := last.offset + int64(len(last.data))
			if gap := s.offset - end; gap >= 0 && gap <= maxGap {
				last.data = append(append(last.data, zeros[:gap]...), s.data...) // its own: it grows by doubling
				continue
			}
		}
		merged = append(merged, segment{s.offset, slices.Clone(s.data)})
	}
	out := binary.AppendUvarint(nil, uint64(len(merged)))
	for _, s := range merged {
		out = append(out, 0, opI32Const)
		out = append(appendSigned(out, s.offset), opEnd)
		out = append(binary.AppendUvarint(out, uint64(len(s.data))), s.data...)
	}
	return out, nil
}

// readSegments returns nothing when there is a segment of another kind.
func readSegments(body []byte) ([]segment, error) {
	count, n := binary.Uvarint(body)
	if n <= 0 || count > uint64(len(body)) {
		return nil, errMalformed
	}
	var list []segment
	for rest := body[n:]; count > 0; count-- {
		if len(rest) < 2 {
			return nil, errMalformed
		}
		if rest[0] != 0 || rest[1] != opI32Const {
			return nil, nil
		}
		offset, n := signed(rest[2:])
		if n == 0 || len(rest) < 3+n {
			return nil, errMalformed
		}
		if rest[2+n] != opEnd || offset < 0 {
			return nil, nil
		}
		data, next, ok := sized(rest[3+n:])
		if !ok {
			return nil, errMalformed
		}
		list = append(list, segment{offset, data})
		rest = next
	}
	return list, nil
}

// sized reads a length and so many bytes.
func sized(in []byte) (data, rest []byte, ok bool) {
	size, n := binary.Uvarint(in)
	if n <= 0 || size > uint64(len(in)-n) {
		return nil, nil, false
	}
	return in[n : n+int(size)], in[n+int(size):], true
}

// signed reads a signed LEB128 of up to 32 bits; n is 0 when there is none.
func signed(in []byte) (v int64, n int) {
	const bits = 7
	for i := 0; i < len(in) && i < 5; i++ {
		v |= int64(in[i]&0x7f) << (bits * i)
		if in[i] < 0x80 {
			if in[i]&0x40 != 0 {
				v -= 1 << (bits * (i + 1))
			}
			return v, i + 1
		}
	}
	return 0, 0
}

// appendSigned writes a signed LEB128 of a number that is not negative.
func appendSigned(out []byte, v int64) []byte {
	for ; v >= 0x40; v >>= 7 {
		out = append(out, byte(v)|0x80)
	}
	return append(out, byte(v))
}
