package wire

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// scanner checks that data is one MessagePack value that is safe to decode. It
// takes no memory that depends on data.
type scanner struct {
	data   []byte
	pos    int
	values int
}

// scan returns nil when data may be decoded.
func scan(data []byte) error {
	s := scanner{data: data}
	if err := s.value(0); err != nil {
		return err
	}
	if rest := len(data) - s.pos; rest > 0 {
		return s.fault(s.pos, "%d bytes after the end of the value", rest)
	}
	return nil
}

func (s *scanner) fault(at int, what string, args ...any) error {
	return &DecodeError{Format: MessagePack, Offset: at, What: fmt.Sprintf(what, args...)}
}

// value checks the next value, which stands inside depth maps and arrays.
func (s *scanner) value(depth int) error {
	if s.pos >= len(s.data) {
		return s.fault(s.pos, "the input ends where a value is expected")
	}
	s.values++
	if s.values > MaxValues {
		return s.fault(s.pos, "more than %d values", MaxValues)
	}
	at := s.pos
	c := s.data[at]
	s.pos++
	switch {
	case msgpcode.IsFixedNum(c) || c == msgpcode.Nil || c == msgpcode.False || c == msgpcode.True:
		return nil
	case msgpcode.IsString(c) || msgpcode.IsBin(c):
		return s.bytes(c, at)
	case msgpcode.IsFixedMap(c) || c == msgpcode.Map16 || c == msgpcode.Map32:
		return s.entries(c, at, depth)
	case msgpcode.IsFixedArray(c) || c == msgpcode.Array16 || c == msgpcode.Array32:
		return s.elements(c, at, depth)
	case c == msgpcode.Float || c == msgpcode.Double:
		return s.float(c, at)
	case c >= msgpcode.Uint8 && c <= msgpcode.Uint64:
		return s.skip(1<<(c-msgpcode.Uint8), at)
	case c >= msgpcode.Int8 && c <= msgpcode.Int64:
		return s.skip(1<<(c-msgpcode.Int8), at)
	case msgpcode.IsExt(c):
		return s.fault(at, "an extension type, which the contract does not know")
	}
	return s.fault(at, "code 0x%02x starts no value", c)
}

func (s *scanner) skip(n uint64, at int) error {
	if rest := len(s.data) - s.pos; n > uint64(rest) {
		return s.fault(at, "declares %d bytes where %d are left", n, rest)
	}
	s.pos += int(n)
	return nil
}

func (s *scanner) bytes(c byte, at int) error {
	if msgpcode.IsFixedString(c) {
		return s.skip(uint64(c&msgpcode.FixedStrMask), at)
	}
	width := 4
	switch c {
	case msgpcode.Str8, msgpcode.Bin8:
		width = 1
	case msgpcode.Str16, msgpcode.Bin16:
		width = 2
	}
	n, err := s.number(width, at)
	if err != nil {
		return err
	}
	return s.skip(n, at)
}

// number reads an unsigned number of width bytes.
func (s *scanner) number(width, at int) (uint64, error) {
	start := s.pos
	if err := s.skip(uint64(width), at); err != nil {
		return 0, err
	}
	var n uint64
	for _, b := range s.data[start:s.pos] {
		n = n<<8 | uint64(b)
	}
	return n, nil
}

// count reads the rest of the header of a map or an array and checks it: each
// entry takes at least size bytes.
func (s *scanner) count(c byte, at, depth, size int) (uint64, error) {
	n := uint64(c & 0x0f)
	var err error
	switch c {
	case msgpcode.Map16, msgpcode.Array16:
		n, err = s.number(2, at)
	case msgpcode.Map32, msgpcode.Array32:
		n, err = s.number(4, at)
	}
	if err != nil {
		return 0, err
	}
	if rest := len(s.data) - s.pos; n*uint64(size) > uint64(rest) {
		return 0, s.fault(at, "declares %d entries where %d bytes are left", n, rest)
	}
	if depth >= MaxDepth {
		return 0, s.fault(at, "nests deeper than %d", MaxDepth)
	}
	return n, nil
}

func (s *scanner) entries(c byte, at, depth int) error {
	n, err := s.count(c, at, depth, 2)
	if err != nil {
		return err
	}
	for range n {
		if s.pos >= len(s.data) {
			return s.fault(s.pos, "the input ends where a key is expected")
		}
		key := s.pos
		k := s.data[key]
		if !msgpcode.IsString(k) {
			return s.fault(key, "a key that is not a string")
		}
		s.pos++
		if err := s.bytes(k, key); err != nil {
			return err
		}
		if err := s.value(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) elements(c byte, at, depth int) error {
	n, err := s.count(c, at, depth, 1)
	if err != nil {
		return err
	}
	for range n {
		if err := s.value(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) float(c byte, at int) error {
	width := 8
	if c == msgpcode.Float {
		width = 4
	}
	start := s.pos
	if err := s.skip(uint64(width), at); err != nil {
		return err
	}
	var f float64
	if width == 4 {
		f = float64(math.Float32frombits(binary.BigEndian.Uint32(s.data[start:])))
	} else {
		f = math.Float64frombits(binary.BigEndian.Uint64(s.data[start:]))
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return s.fault(at, "a number that is not finite")
	}
	return nil
}
