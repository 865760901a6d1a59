package mortise

// Skip reads one value and forgets it. It is checked like any other: counts,
// lengths, depth, keys and numbers.
func (d *Decoder) Skip() {
	if d.pos >= len(d.s) {
		d.code()
		return
	}
	at := d.pos
	switch c := d.s[at]; {
	case c&0xe0 == 0xa0 || c >= 0xd9 && c <= 0xdb:
		d.Str()
	case c == 0xc4:
		d.pos++
		d.take(d.be(1), at)
	case c == 0xc5:
		d.pos++
		d.take(d.be(2), at)
	case c == 0xc6:
		d.pos++
		d.take(d.be(4), at)
	case c&0xf0 == 0x80 || c == 0xde || c == 0xdf:
		d.skipMap()
	case c&0xf0 == 0x90 || c == 0xdc || c == 0xdd:
		d.skipArray()
	default:
		d.Value()
	}
}

func (d *Decoder) skipMap() {
	n, ok := d.OpenMap()
	if !ok {
		return
	}
	for range n {
		d.Key()
		d.Skip()
		if d.err != nil {
			return
		}
	}
	d.Close()
}

func (d *Decoder) skipArray() {
	n, ok := d.OpenArray()
	if !ok {
		return
	}
	for range n {
		d.Skip()
		if d.err != nil {
			return
		}
	}
	d.Close()
}
