package wire

import "github.com/vmihailenco/msgpack/v5/msgpcode"

// dynamic reads a value for a field of type any.
func (d *decoder) dynamic(c byte) (any, error) {
	switch {
	case c == msgpcode.Nil:
		return nil, d.lib.DecodeNil()
	case c == msgpcode.True || c == msgpcode.False:
		return d.lib.DecodeBool()
	case msgpcode.IsString(c):
		return d.text(c)
	case msgpcode.IsBin(c):
		return d.lib.DecodeBytes()
	case isMap(c):
		return d.object()
	case isArray(c):
		return d.list()
	}
	return d.number(c)
}

func (d *decoder) object() (map[string]any, error) {
	at := d.offset()
	n, err := d.lib.DecodeMapLen()
	if err != nil {
		return nil, err
	}
	m := make(map[string]any, n)
	for range n {
		c, err := d.lib.PeekCode()
		if err != nil {
			return nil, err
		}
		key, err := d.text(c)
		if err != nil {
			return nil, err
		}
		if c, err = d.lib.PeekCode(); err != nil {
			return nil, err
		}
		if m[key], err = d.dynamic(c); err != nil {
			return nil, err
		}
	}
	if len(m) != n {
		return nil, d.fault(at, "a key of this map comes twice")
	}
	return m, nil
}

func (d *decoder) list() ([]any, error) {
	n, err := d.lib.DecodeArrayLen()
	if err != nil {
		return nil, err
	}
	out := make([]any, n)
	for i := range out {
		c, err := d.lib.PeekCode()
		if err != nil {
			return nil, err
		}
		if out[i], err = d.dynamic(c); err != nil {
			return nil, err
		}
	}
	return out, nil
}
