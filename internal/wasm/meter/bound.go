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

// CheckLocals counts the locals of every function and refuses a module that has too
// many in one, as [ErrLimit]. [Rewrite] and [Bound] do it; whoever gives a module to
// an engine as it is must too.
func CheckLocals(m *wasm.Module) error {
	s := section(m, secCode)
	if s == nil {
		return nil
	}
	c := &cursor{b: s.Body}
	n := c.count(2)
	if n != len(m.Funcs) {
		c.fail(ErrInvalid, "%d function bodies for %d functions", n, len(m.Funcs))
	}
	for i := range n {
		body := &cursor{b: c.take(c.count(1))}
		if c.err != nil {
			break
		}
		body.locals(len(m.Types[m.Funcs[i]].Params))
		if body.err != nil {
			return fmt.Errorf("meter: %w", body.err)
		}
	}
	if c.err != nil {
		return fmt.Errorf("meter: %w", c.err)
	}
	return nil
}

// Bound returns the module as it is, except that its tables cannot grow beyond
// maxTable elements, DefaultMaxTable when 0, and without a name section that is
// broken. It is for a module that [Rewrite] refuses as [ErrUnsupported] and that runs
// without being metered.
func Bound(m *wasm.Module, maxTable uint32) ([]byte, error) {
	if err := CheckLocals(m); err != nil {
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
	out := appendU32(nil, uint32(len(tables)))
	for i, t := range tables {
		if t.Limits.Min > limit {
			return nil, fmt.Errorf("meter: %w: table %d starts with %d elements of %d", ErrLimit, i, t.Limits.Min, limit)
		}
		if t.Limits.Is64 || t.Limits.Shared {
			return nil, fmt.Errorf("meter: %w: shared or 64-bit table %d", ErrUnsupported, i)
		}
		most := limit
		if t.Limits.HasMax {
			most = min(most, t.Limits.Max)
		}
		out = appendU32(append(out, byte(t.Elem), 1), uint32(t.Limits.Min)) // with a maximum
		out = appendU32(out, uint32(most))
	}
	return out, nil
}
