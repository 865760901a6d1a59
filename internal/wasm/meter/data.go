package meter

// Segment is an active data segment.
type Segment struct {
	// Index is the segment's place among all of the original module.
	Index int
	// Offset is where the bytes go in the memory. They are shared with the
	// original module.
	Offset uint32
	Bytes  []byte
}

// dataSegments are the data segments of a module. An engine keeps a record of
// each segment in each instance, and copies the active ones when it makes one; a
// guest of Go's toolchain has tens of thousands, and an instance that is put into
// the state of a template needs none. So the active ones leave the module, if the
// memory is its own and their offsets are known now.
type dataSegments struct {
	// moved is set when the active segments are taken out.
	moved bool
	// active are those that are taken out, passive the encodings of those that stay.
	active  []Segment
	passive [][]byte
	// indices are the places of the original segments in the new section. Place 0
	// is an empty segment, which all those that were taken out share: after the
	// instantiation an active segment counts as dropped.
	indices []uint32
	// counted is set when the module has a data count section. Only then its code
	// can name segments.
	counted bool
}

// surveyData walks over the data segments. wazero makes room for as many segments
// and bytes as the numbers say, before it looks for them: a few bytes could end the
// process.
func (w *rewriter) surveyData(c *cursor) {
	d := &w.data
	total := c.count(2)
	d.counted = w.section(secDataCount) != nil
	d.moved = w.ownMemory() && w.countIs(total)
	for index := range total {
		start := c.pos
		flags := c.u32()
		var offset []byte
		switch flags {
		case 1:
		case 0, 2:
			if flags == 2 && c.u32() != 0 {
				d.moved = false // for the engine to refuse
			}
			at := c.pos
			w.constant(c, nil)
			offset = c.b[at:c.pos]
		default:
			c.fail(ErrInvalid, "data segment flags %d", flags)
		}
		content := c.take(c.count(1))
		if c.err != nil {
			break
		}
		d.add(index, offset, content, c.b[start:c.pos])
	}
	c.end()
	if c.err != nil {
		w.fail(c.err)
	}
	if !d.moved {
		d.active = nil
	}
}

// add notes a segment. Without an offset it is passive.
func (d *dataSegments) add(index int, offset, content, raw []byte) {
	if !d.moved {
		return
	}
	if offset == nil {
		d.indices = append(d.indices, uint32(len(d.passive)+1))
		d.passive = append(d.passive, raw)
		return
	}
	at, ok := evaluate(offset)
	if !ok {
		d.moved = false // an imported global, or an expression that the engine refuses
		return
	}
	d.indices = append(d.indices, 0)
	d.active = append(d.active, Segment{Index: index, Offset: at, Bytes: content})
}

// ownMemory reports whether the module defines its memory, which is then zero.
func (w *rewriter) ownMemory() bool { return len(w.module.Memories) == 1 && !w.importsMemory }

// countIs reports whether the data count section, if there is one, is right.
func (w *rewriter) countIs(n int) bool {
	s := w.section(secDataCount)
	if s == nil {
		return true
	}
	c := &cursor{b: s.Body}
	return c.u32() == uint32(n) && c.err == nil && !c.more()
}

// evaluate computes a constant expression of type i32, or reports that it cannot.
// A global's value is not known: wazero lets offsets name imported ones only.
func evaluate(expr []byte) (uint32, bool) {
	c := &cursor{b: expr}
	var stack []uint32
	for c.more() {
		switch op := uint32(c.byte()); op {
		case opI32Const:
			stack = append(stack, uint32(c.i32()))
		case opI32Add, opI32Sub, opI32Mul:
			n := len(stack)
			if n < 2 {
				return 0, false
			}
			stack = append(stack[:n-2], arithmetic(op, stack[n-2], stack[n-1]))
		case opEnd:
			if c.err != nil || c.more() || len(stack) != 1 {
				return 0, false
			}
			return stack[0], true
		default:
			return 0, false
		}
	}
	return 0, false
}

func arithmetic(op, a, b uint32) uint32 {
	switch op {
	case opI32Add:
		return a + b
	case opI32Sub:
		return a - b
	default:
		return a * b
	}
}

// renumber makes an instruction name the new place of its segment. The rest of
// its bytes stays as it is.
func (d *dataSegments) renumber(i instruction) instruction {
	if !d.moved || i.op != opMemoryInit && i.op != opDataDrop || len(i.raw) == 0 {
		return i
	}
	if int64(i.index) >= int64(len(d.indices)) {
		return i // price has refused it
	}
	c := &cursor{b: i.raw}
	c.byte()
	c.u32()
	head := c.pos
	c.u32()
	i.index = d.indices[i.index]
	i.raw = append(appendU32(append([]byte(nil), i.raw[:head]...), i.index), i.raw[c.pos:]...)
	return i
}

// stay are the segments that the new section holds.
func (d *dataSegments) stay() [][]byte {
	if !d.counted {
		return d.passive
	}
	return append([][]byte{{1, 0}}, d.passive...)
}

func (w *rewriter) dataCountSection(body []byte) []byte {
	if body == nil || !w.data.moved {
		return body
	}
	return appendU32(nil, uint32(len(w.data.stay())))
}

func (w *rewriter) dataSection(body []byte) []byte {
	if body == nil || !w.data.moved {
		return body
	}
	segments := w.data.stay()
	out := appendU32(nil, uint32(len(segments)))
	for _, s := range segments {
		out = append(out, s...)
	}
	return out
}
