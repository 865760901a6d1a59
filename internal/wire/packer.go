package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// packer rewrites valid JSON as MessagePack for our own decoder: every header
// is of the widest form, so that a count can be filled in afterwards.
type packer struct {
	in     []byte
	pos    int
	out    []byte
	values int
}

func (p *packer) fault(what string) error {
	return &DecodeError{Format: JSON, Offset: p.pos, What: what}
}

// next skips white space, commas and colons and returns the byte after them.
func (p *packer) next() byte {
	for {
		switch c := p.in[p.pos]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
			p.pos++
		default:
			return c
		}
	}
}

// value rewrites the next value, which stands inside depth objects and arrays.
func (p *packer) value(depth int) error {
	c := p.next()
	p.values++
	if p.values > MaxValues {
		return p.fault(fmt.Sprintf("more than %d values", MaxValues))
	}
	switch c {
	case '{':
		return p.container(msgpcode.Map32, '}', depth)
	case '[':
		return p.container(msgpcode.Array32, ']', depth)
	case '"':
		return p.text()
	case 'n':
		p.literal("null", msgpcode.Nil)
	case 't':
		p.literal("true", msgpcode.True)
	case 'f':
		p.literal("false", msgpcode.False)
	default:
		return p.number()
	}
	return nil
}

func (p *packer) literal(text string, code byte) {
	p.pos += len(text)
	p.out = append(p.out, code)
}

// container rewrites an object or an array up to its closing byte.
func (p *packer) container(code, closing byte, depth int) error {
	if depth >= MaxDepth {
		return p.fault(fmt.Sprintf("nests deeper than %d", MaxDepth))
	}
	p.pos++
	p.out = append(p.out, code, 0, 0, 0, 0)
	header := len(p.out)
	n := uint32(0)
	for ; p.next() != closing; n++ {
		if code == msgpcode.Map32 {
			if err := p.text(); err != nil {
				return err
			}
		}
		if err := p.value(depth + 1); err != nil {
			return err
		}
	}
	p.pos++
	binary.BigEndian.PutUint32(p.out[header-4:], n)
	return nil
}

// text rewrites a string. The library takes care of escapes and of bytes that
// are not UTF-8.
func (p *packer) text() error {
	start := p.pos
	p.pos = closingQuote(p.in, start) + 1
	raw := p.in[start+1 : p.pos-1]
	if bytes.IndexByte(raw, '\\') >= 0 || !utf8.Valid(raw) {
		var s string
		if err := json.Unmarshal(p.in[start:p.pos], &s); err != nil {
			return p.fault("not a string")
		}
		raw = []byte(s)
	}
	p.out = binary.BigEndian.AppendUint32(append(p.out, msgpcode.Str32), uint32(len(raw)))
	p.out = append(p.out, raw...)
	return nil
}

// number rewrites a number: an integer when it is written as one and fits.
func (p *packer) number() error {
	start := p.pos
	for p.pos < len(p.in) && bytes.IndexByte([]byte("+-.0123456789eE"), p.in[p.pos]) >= 0 {
		p.pos++
	}
	text := string(p.in[start:p.pos])
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		p.out = binary.BigEndian.AppendUint64(append(p.out, msgpcode.Int64), uint64(i))
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		p.pos = start
		return p.fault("a number that no float64 can hold")
	}
	p.out = binary.BigEndian.AppendUint64(append(p.out, msgpcode.Double), math.Float64bits(f))
	return nil
}
