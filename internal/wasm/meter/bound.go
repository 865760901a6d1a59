package meter

import (
	"cmp"
	"fmt"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// maxLocals is how many locals a function may have, as in browsers. wazero has no
// bound of its own: a few bytes could ask its compiler for billions.
const maxLocals = 50000

// locals reads the declarations at the start of a function body and returns how
// many locals there are, parameters included.
func (c *cursor) locals(params int) int {
	n := params
	for range c.count(2) {
		more := c.u32()
		if int64(n)+int64(more) > maxLocals {
			c.fail(ErrLimit, "more than %d locals", maxLocals)
			return 0
		}
		n += int(more)
		c.valueType()
	}
	return n
}

// Bound returns the module as it is, except that its tables cannot grow beyond
// maxTable elements together, DefaultMaxTable when 0, of which each gets the same share,
// and without a name section that is broken. It is for a module that [Rewrite] refuses as [ErrUnsupported] and that runs
// without being metered.
func Bound(m *wasm.Module, maxTable uint32) ([]byte, error) {
	if err := Check(m); err != nil {
		return nil, err
	}
	limit := uint64(cmp.Or(maxTable, DefaultMaxTable))
	out := []byte("\x00asm\x01\x00\x00\x00")
	for i := range m.Sections {
		s := &m.Sections[i]
		switch {
		case s.ID == secCustom && (len(s.Body) == 0 || s.Name == "name" && m.Names != nil):
		case s.ID == secCustom:
			out = appendBytes(append(out, secCustom), append(appendName(nil, s.Name), s.Body...))
		case s.ID == secTable:
			body, err := boundTables(m.Tables, limit)
			if err != nil {
				return nil, err
			}
			out = appendBytes(append(out, secTable), body)
		default:
			out = appendBytes(append(out, s.ID), s.Body)
		}
	}
	return out, nil
}

func boundTables(tables []wasm.Table, limit uint64) ([]byte, error) {
	if err := checkTables(tables, limit); err != nil {
		return nil, err
	}
	out, free := appendU32(nil, uint32(len(tables))), limit
	for _, t := range tables {
		free -= t.Limits.Min // checked
	}
	for i, t := range tables {
		if t.Limits.Is64 || t.Limits.Shared {
			return nil, fmt.Errorf("meter: %w: shared or 64-bit table %d", ErrUnsupported, i)
		}
		most := t.Limits.Min + free/uint64(len(tables))
		if t.Limits.HasMax {
			most = min(most, t.Limits.Max)
		}
		out = appendU32(append(out, byte(t.Elem), 1), uint32(t.Limits.Min)) // with a maximum
		out = appendU32(out, uint32(most))
	}
	return out, nil
}
