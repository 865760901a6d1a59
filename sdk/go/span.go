package mortise

// A guest skips much more than it reads, and in Wasm a call or a branch of Go code is
// dear. So what is skipped of a long list is measured by one loop and a table.

// span says for the first byte of a value how many bytes it takes, header included,
// and in the high byte how many values follow that belong to it. Zero means that the
// length stands in the bytes behind.
var span = spans()

func spans() (t [256]uint16) {
	for c := range t {
		switch {
		case c <= 0x7f || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3:
			t[c] = 1
		case c&0xf0 == 0x80:
			t[c] = 1 | uint16(c&0x0f)<<9
		case c&0xf0 == 0x90:
			t[c] = 1 | uint16(c&0x0f)<<8
		case c&0xe0 == 0xa0:
			t[c] = 1 + uint16(c&0x1f)
		case c == 0xca:
			t[c] = 5
		case c == 0xcb:
			t[c] = 9
		case c >= 0xcc && c <= 0xd3:
			t[c] = 1 + 1<<(c&3)
		}
	}
	return t
}

// measure returns where the value that starts at pos ends. It checks that all of it
// is there, and nothing else: not how deep it nests, not its keys. Without a value it
// returns -1.
func measure(s string, pos int) int {
	for left := 1; left > 0; left-- {
		if pos >= len(s) {
			return -1
		}
		c := s[pos]
		if t := span[c]; t != 0 {
			pos += int(t & 0xff)
			left += int(t >> 8)
			continue
		}
		if c == 0xda && len(s)-pos > 2 { // what most messages say is that long
			pos += 3 + (int(s[pos+1])<<8 | int(s[pos+2]))
			continue
		}
		size, values := wide(s, pos)
		if size == 0 || size > len(s)-pos {
			return -1
		}
		pos += size
		if left += values; left > len(s) {
			return -1
		}
	}
	if pos > len(s) {
		return -1
	}
	return pos
}

// wide measures a value whose length stands behind its first byte. A size of zero
// means that there is none.
func wide(s string, pos int) (size, values int) {
	width := 0
	c := s[pos]
	switch c {
	case 0xc4, 0xd9:
		width = 1
	case 0xc5, 0xda, 0xdc, 0xde:
		width = 2
	case 0xc6, 0xdb, 0xdd, 0xdf:
		width = 4
	}
	if width == 0 || len(s)-pos <= width {
		return 0, 0
	}
	n := uint(0)
	for _, b := range []byte(s[pos+1 : pos+1+width]) {
		n = n<<8 | uint(b)
	}
	if n > uint(len(s)) {
		return 0, 0
	}
	switch c {
	case 0xdc, 0xdd:
		return 1 + width, int(n)
	case 0xde, 0xdf:
		return 1 + width, 2 * int(n)
	}
	return 1 + width + int(n), 0
}

// seek returns where the value of a key of the map s starts, -1 when there is no such
// key, and -2 when s is to be looked at more closely. key is shorter than 32 bytes.
func seek(s, key string) int {
	if s == "" || s[0]&0xf0 != 0x80 {
		return -2
	}
	pos := 1
	for left := s[0] & 0x0f; left > 0; left-- {
		if pos >= len(s) || s[pos]&0xe0 != 0xa0 {
			return -2
		}
		start := pos + 1
		pos = start + int(s[pos]&0x1f)
		if pos >= len(s) {
			return -2
		}
		if pos-start == len(key) && s[start] == key[0] && s[start:pos] == key {
			return pos
		}
		if t := span[s[pos]]; t != 0 && t <= 0xff {
			pos += int(t)
		} else if pos = measure(s, pos); pos < 0 {
			return -2
		}
	}
	return -1
}
