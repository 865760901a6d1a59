package mortise

// Skip reads one value and forgets it. It is checked like any other: counts,
// lengths, depth, keys and numbers.
func (d *Decoder) Skip() { d.skip(1, nil) }

// level is a map or an array that is open: how many values follow. A map has two
// for each entry, so a key is next when the number is even.
type level struct {
	left  int
	keyed bool
}

// skip reads n values and, unless views is nil, makes each of them the raw value of
// a view. It is one loop for values of any depth, because a guest skips much more
// than it reads, and a call is dear in Wasm.
func (d *Decoder) skip(n int, views []MessageView) {
	var open [MaxDepth + 1]level
	open[0].left = n
	in, done, start := 0, 0, d.pos
	for {
		for open[in].left == 0 {
			if in == 0 {
				d.view(views, done, start)
				return
			}
			in--
			d.depth--
		}
		if in == 0 && done < n-open[0].left {
			d.view(views, done, start)
			done, start = done+1, d.pos
		}
		if d.pos >= len(d.s) {
			d.code()
			return
		}
		c := d.s[d.pos]
		if open[in].keyed && open[in].left&1 == 0 && c&0xe0 != 0xa0 && (c < 0xd9 || c > 0xdb) {
			d.wrong(d.pos, "a string key")
			return
		}
		open[in].left--
		if size := d.small(c); size > 0 {
			d.pos += size
			continue
		}
		inner, ok := d.skipOne(c)
		if d.err != nil {
			return
		}
		if ok {
			in++
			open[in] = inner
		}
	}
}

// view ends the value of the view with number i, if there is one.
func (d *Decoder) view(views []MessageView, i, start int) {
	if i < len(views) {
		views[i].raw = d.s[start:d.pos]
	}
}

// small returns the size of a value that starts with c and fits, header included,
// and 0 for maps, arrays and everything that needs a closer look.
func (d *Decoder) small(c byte) int {
	size := 0
	switch {
	case c <= 0x7f || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3:
		return 1
	case c&0xe0 == 0xa0:
		size = 1 + int(c&0x1f)
	case c == 0xd9 && d.pos+1 < len(d.s):
		size = 2 + int(d.s[d.pos+1])
	case c == 0xda && d.pos+2 < len(d.s):
		size = 3 + int(d.s[d.pos+1])<<8 + int(d.s[d.pos+2])
	}
	if size > len(d.s)-d.pos {
		return 0
	}
	return size
}

// skipOne reads a value without elements, or the header of a map or an array; then
// ok is true and the values of inner follow.
func (d *Decoder) skipOne(c byte) (inner level, ok bool) {
	at := d.pos
	switch {
	case c&0xf0 == 0x80 || c == 0xde || c == 0xdf:
		n, ok := d.OpenMap()
		return level{left: 2 * n, keyed: true}, ok
	case c&0xf0 == 0x90 || c == 0xdc || c == 0xdd:
		n, ok := d.OpenArray()
		return level{left: n}, ok
	case c == 0xc4:
		d.pos++
		d.take(d.be(1), at)
	case c == 0xc5:
		d.pos++
		d.take(d.be(2), at)
	case c == 0xc6:
		d.pos++
		d.take(d.be(4), at)
	default:
		d.Value()
	}
	return level{}, false
}
