package wire

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// dynamic reads a value for a field of type any.
func (d *decoder) dynamic() (any, error) {
	switch c := d.data[d.pos]; {
	case c == msgpcode.Nil:
		d.pos++
		return nil, nil //nolint:nilnil // nil is a value
	case c == msgpcode.True || c == msgpcode.False:
		d.pos++
		return c == msgpcode.True, nil
	case msgpcode.IsString(c):
		return d.text()
	case msgpcode.IsBin(c):
		from, to := d.span()
		return bytes.Clone(d.data[from:to]), nil
	case isMap(c):
		return d.object()
	case isArray(c):
		return d.list()
	}
	at := d.pos
	switch i, f, kind := d.number(); kind {
	case isInteger:
		return i, nil
	case isFloat:
		return f, nil
	}
	return nil, d.fault(at, "not a number")
}

func (d *decoder) object() (map[string]any, error) {
	at := d.pos
	n := d.count()
	m := make(map[string]any, n)
	for range n {
		key, err := d.text()
		if err != nil {
			return nil, err
		}
		if m[key], err = d.dynamic(); err != nil {
			return nil, err
		}
	}
	if len(m) != n {
		return nil, d.fault(at, "a key of this map comes twice")
	}
	return m, nil
}

func (d *decoder) list() ([]any, error) {
	out := make([]any, d.count())
	for i := range out {
		var err error
		if out[i], err = d.dynamic(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
