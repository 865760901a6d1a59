package wasm

// An engine makes room for as many items as a section claims before it reads
// them: seventeen bytes can ask for gigabytes. The functions here walk over the
// sections that this package does not decode, and check every claim against the
// bytes that are there.

// claims checks the counts and lengths in a section.
func (r *reader) claims(id byte) error {
	switch id {
	case idTag:
		_, err := r.bounded(2, maxTags, "tags")
		return err
	case idElement:
		return r.each(3, maxElementSegments, "element segments", r.element)
	case idData:
		return r.each(2, maxDataSegments, "data segments", r.data)
	}
	return nil
}

// each reads a count and then so many items.
func (r *reader) each(least, most int, what string, item func() error) error {
	n, err := r.bounded(least, most, what)
	if err != nil {
		return err
	}
	for range n {
		if err := item(); err != nil {
			return err
		}
	}
	return nil
}

// element walks over an element segment. Bit 0 of its flags: not active; bit 1:
// a table index, or declarative; bit 2: expressions in place of indices.
func (r *reader) element() error {
	flags, err := r.u32("element segment flags")
	if err != nil {
		return err
	}
	if flags > 7 {
		return r.fail(ErrMalformed, "element segment flags %d", flags)
	}
	if flags&1 == 0 {
		if err := r.place(flags&2 != 0); err != nil {
			return err
		}
	}
	if flags&3 != 0 {
		if err := r.elementType(flags&4 != 0); err != nil {
			return err
		}
	}
	return r.each(1, maxElements, "elements", func() error {
		if err := r.add(1, maxElements, "elements"); err != nil {
			return err
		}
		if flags&4 != 0 {
			return r.constant()
		}
		_, err := r.u32("function index")
		return err
	})
}

// elementType reads what a segment holds: a kind, or a type of one byte. A longer type
// would put the count elsewhere.
func (r *reader) elementType(typed bool) error {
	if typed {
		_, err := r.valueType("element type")
		return err
	}
	kind, err := r.byte("element kind")
	if err == nil && kind != 0 {
		return r.fail(ErrMalformed, "element kind %d", kind)
	}
	return err
}

// data walks over a data segment.
func (r *reader) data() error {
	flags, err := r.u32("data segment flags")
	if err != nil {
		return err
	}
	if flags > 2 {
		return r.fail(ErrMalformed, "data segment flags %d", flags)
	}
	if flags != 1 {
		if err := r.place(flags == 2); err != nil {
			return err
		}
	}
	n, err := r.count(1, "bytes of data")
	r.pos += n
	return err
}

// place walks over where an active segment goes.
func (r *reader) place(indexed bool) error {
	if indexed {
		if _, err := r.u32("table or memory index"); err != nil {
			return err
		}
	}
	return r.constant()
}

// constant walks over a constant expression.
func (r *reader) constant() error {
	for range maxConstant {
		op, err := r.byte("constant expression")
		if err != nil {
			return err
		}
		switch op {
		case 0x0b: // end
			return nil
		case 0x23, 0xd2: // global.get, ref.func
			_, err = r.u32("index")
		case 0x41, 0x42, 0xd0: // i32.const, i64.const, ref.null
			err = r.skipNumber()
		case 0x43: // f32.const
			err = r.skip(4)
		case 0x44: // f64.const
			err = r.skip(8)
		case 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e: // arithmetic
		case 0xfd: // v128.const
			if _, err = r.u32("opcode"); err == nil {
				err = r.skip(16)
			}
		default:
			return r.fail(ErrUnsupported, "opcode 0x%02x in a constant expression", op)
		}
		if err != nil {
			return err
		}
	}
	return r.fail(ErrLimit, "a constant expression of more than %d instructions", maxConstant)
}

// skipNumber walks over a signed number of at most ten bytes.
func (r *reader) skipNumber() error {
	for range 10 {
		c, err := r.byte("number")
		if err != nil || c&0x80 == 0 {
			return err
		}
	}
	return r.fail(ErrMalformed, "a number is too long")
}

func (r *reader) skip(n int) error {
	if n > r.remaining() {
		return r.short("a number")
	}
	r.pos += n
	return nil
}

// names checks the claims of a name section. It is a custom section, and wrong
// ones are common, so a wrong one does not make the module wrong; but one that
// claims more than it holds must not reach an engine.
func (r *reader) names() error {
	for r.remaining() > 0 {
		id, err := r.byte("name subsection")
		if err != nil {
			return err
		}
		n, err := r.count(1, "bytes of a name subsection")
		if err != nil {
			return err
		}
		sub := &reader{b: r.b, pos: r.pos, end: r.pos + n, items: r.items}
		r.pos = sub.end
		switch id {
		case 1:
			err = sub.nameMap()
		case 2:
			err = sub.each(2, maxNames, "functions with names", func() error {
				if err := sub.add(1, maxNames, "names"); err != nil {
					return err
				}
				if _, err := sub.u32("function index"); err != nil {
					return err
				}
				return sub.nameMap()
			})
		}
		if err != nil {
			return err
		}
		r.items = sub.items
	}
	return nil
}

// nameMap walks over a list of indices with names.
func (r *reader) nameMap() error {
	return r.each(2, maxNames, "names", func() error {
		if err := r.add(1, maxNames, "names"); err != nil {
			return err
		}
		if _, err := r.u32("index"); err != nil {
			return err
		}
		n, err := r.count(1, "bytes of a name")
		r.pos += n
		return err
	})
}
