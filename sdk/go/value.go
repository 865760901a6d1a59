package mortise

// Value reads a dynamic value: nil, bool, int64, float64, string, []byte,
// []any or map[string]any.
func (d *Decoder) Value() any {
	if d.pos >= len(d.s) {
		d.code()
		return nil
	}
	at := d.pos
	switch c := d.s[at]; {
	case c == 0xc0:
		d.pos++
		return nil
	case c == 0xc2 || c == 0xc3:
		return d.Bool()
	case c&0xe0 == 0xa0 || c >= 0xd9 && c <= 0xdb:
		return d.Str()
	case c >= 0xc4 && c <= 0xc6:
		return d.Binary()
	case c&0xf0 == 0x80 || c == 0xde || c == 0xdf:
		return d.anyMap()
	case c&0xf0 == 0x90 || c == 0xdc || c == 0xdd:
		return d.anyList()
	}
	d.pos++
	switch i, f, kind := d.number(d.s[at], at); kind {
	case numInt:
		return i
	case numFloat:
		return f
	}
	d.wrong(at, "a type of the contract")
	return nil
}

func (d *Decoder) anyMap() map[string]any {
	n, ok := d.OpenMap()
	if !ok {
		return nil
	}
	m := make(map[string]any, n)
	for range n {
		k := d.Key()
		m[k] = d.Value()
		if d.err != nil {
			return nil
		}
	}
	if len(m) != n {
		d.fail(d.pos, "a key of this map comes twice")
		return nil
	}
	d.Close()
	return m
}

func (d *Decoder) anyList() []any {
	n, ok := d.OpenArray()
	if !ok {
		return nil
	}
	list := make([]any, n)
	for i := range list {
		list[i] = d.Value()
		if d.err != nil {
			return nil
		}
	}
	d.Close()
	return list
}

func (d *Decoder) stringList() []string {
	n, ok := d.OpenArray()
	if !ok {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = d.Str()
		if d.err != nil {
			return nil
		}
	}
	d.Close()
	return list
}

func (d *Decoder) intList() []int {
	n, ok := d.OpenArray()
	if !ok {
		return nil
	}
	list := make([]int, n)
	for i := range list {
		switch rest := d.s[d.pos:]; { // most are of one or two bytes
		case len(rest) > 0 && rest[0] <= 0x7f:
			list[i] = int(rest[0])
			d.pos++
		case len(rest) > 1 && rest[0] == 0xcc:
			list[i] = int(rest[1])
			d.pos += 2
		case len(rest) > 2 && rest[0] == 0xcd:
			list[i] = int(rest[1])<<8 | int(rest[2])
			d.pos += 3
		default:
			if list[i] = d.int(); d.err != nil {
				return nil
			}
		}
	}
	d.Close()
	return list
}
