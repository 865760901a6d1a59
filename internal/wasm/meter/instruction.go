package meter

// Opcodes that the rewriter looks at. Prefixed ones are prefix<<16 | code.
const (
	opBlock              = 0x02
	opLoop               = 0x03
	opIf                 = 0x04
	opElse               = 0x05
	opEnd                = 0x0b
	opBr                 = 0x0c
	opBrIf               = 0x0d
	opBrTable            = 0x0e
	opReturn             = 0x0f
	opCall               = 0x10
	opCallIndirect       = 0x11
	opReturnCall         = 0x12
	opReturnCallIndirect = 0x13
	opCallRef            = 0x14
	opReturnCallRef      = 0x15
	opThrow              = 0x08
	opThrowRef           = 0x0a
	opTryTable           = 0x1f
	opLocalGet           = 0x20
	opLocalSet           = 0x21
	opLocalTee           = 0x22
	opGlobalGet          = 0x23
	opGlobalSet          = 0x24
	opTableSet           = 0x26
	opMemoryGrow         = 0x40
	opI32Const           = 0x41
	opI32Add             = 0x6a
	opI32Sub             = 0x6b
	opI32Mul             = 0x6c
	opRefNull            = 0xd0
	opRefFunc            = 0xd2
	opRefAsNonNull       = 0xd4
	opBrOnNull           = 0xd5
	opBrOnNonNull        = 0xd6
	opMemoryInit         = 0xfc<<16 | 8
	opDataDrop           = 0xfc<<16 | 9
	opMemoryCopy         = 0xfc<<16 | 10
	opMemoryFill         = 0xfc<<16 | 11
	opTableInit          = 0xfc<<16 | 12
	opElemDrop           = 0xfc<<16 | 13
	opTableCopy          = 0xfc<<16 | 14
	opTableGrow          = 0xfc<<16 | 15
	opTableFill          = 0xfc<<16 | 17
	opAtomicWait32       = 0xfe<<16 | 1
	opAtomicWait64       = 0xfe<<16 | 2
)

// instruction is one decoded instruction. Index and second are its first two
// index immediates, where it has them.
type instruction struct {
	op            uint32
	start, end    int
	index, second uint32
	// raw are its bytes, encoded as the module has them: a malformed encoding
	// must stay malformed.
	raw []byte
	// blockType is the type index of a block, or -1.
	blockType int64
}

// next decodes the instruction at the cursor.
func (c *cursor) next(i *instruction) {
	*i = instruction{start: c.pos, blockType: -1}
	i.op = uint32(c.byte())
	switch i.op {
	case 0xfe: // wazero reads one byte, whatever its top bit says
		i.op = i.op<<16 | uint32(c.byte())
	case 0xfc, 0xfd:
		sub := c.u32()
		if sub > 0xffff {
			c.fail(ErrUnsupported, "opcode 0x%02x %d", i.op, sub)
		}
		i.op = i.op<<16 | sub
	}
	c.immediates(i)
	i.end = c.pos
	if c.err == nil {
		i.raw = c.b[i.start:i.end]
	}
}

func (c *cursor) immediates(i *instruction) {
	switch op := i.op; {
	case oneIndex(op):
		i.index = c.u32()
	case plain(op):
	case op>>16 == 0xfc:
		c.bulk(i)
	case op>>16 == 0xfd:
		c.simd(op & 0xffff)
	case op>>16 == 0xfe:
		c.atomic(op & 0xffff)
	case op == opBlock || op == opLoop || op == opIf:
		i.blockType = c.blockType()
	case op == opTryTable:
		i.blockType = c.blockType()
		i.second = c.catches()
	case op == opBrTable:
		c.labels(i)
	case op == 0x1c: // select t
		for range c.count(1) {
			c.valueType()
		}
	case op == opCallIndirect || op == opReturnCallIndirect:
		i.index, i.second = c.u32(), c.u32()
	case op >= 0x28 && op <= 0x3e:
		c.memarg()
	case op == opI32Const:
		c.leb(5)
	case op == 0x42:
		c.leb(10)
	case op == 0x43:
		c.skip(4)
	case op == 0x44:
		c.skip(8)
	case op == opRefNull:
		c.heapType()
	case c.typed && op == opRefAsNonNull:
	case c.typed && (op == opCallRef || op == opReturnCallRef || op == opBrOnNull || op == opBrOnNonNull):
		i.index = c.u32()
	default:
		c.fail(ErrUnsupported, "opcode 0x%02x", op)
	}
}

// labels reads those of a br_table.
func (c *cursor) labels(i *instruction) {
	n := c.count(1)
	for range n + 1 {
		i.index = max(i.index, c.u32())
	}
	i.second = uint32(n) // fits: each has a byte
}

// oneIndex reports whether an opcode has one index immediate.
func oneIndex(op uint32) bool {
	switch op {
	case opThrow,
		opBr, opBrIf,
		opCall, opReturnCall,
		opLocalGet, opLocalSet, opLocalTee,
		opGlobalGet, opGlobalSet,
		0x25, opTableSet, // table.get, set
		0x3f, opMemoryGrow,
		opRefFunc:
		return true
	}
	return false
}

// plain reports whether an opcode has no immediates.
func plain(op uint32) bool {
	return op <= 0x01 || op == opElse || op == opThrowRef || op == opEnd || op == opReturn ||
		op == 0x1a || op == 0x1b || op >= 0x45 && op <= 0xc4 || op == 0xd1
}

// blockType reads a type index, which is encoded as a signed number, or -1 for a type.
func (c *cursor) blockType() int64 {
	if c.pos < len(c.b) && c.b[c.pos] == 0x40 {
		c.pos++
		return -1
	}
	if c.pos < len(c.b) && c.b[c.pos]&0xc0 == 0x40 { // below zero, in one byte
		c.valueType()
		return -1
	}
	start := c.pos
	index := c.u32()
	if n := c.pos - start; c.err == nil && n < 5 && c.b[c.pos-1]&0x40 != 0 {
		c.fail(ErrInvalid, "block type below zero")
	}
	return int64(index)
}

func (c *cursor) catches() uint32 {
	n := c.count(2)
	for range n {
		if kind := c.byte(); kind < 2 {
			c.u32()
		} else if kind > 3 {
			c.fail(ErrInvalid, "catch kind %d", kind)
		}
		c.u32()
	}
	return uint32(n) // fits: each has two bytes
}

func (c *cursor) memarg() {
	if align := c.u32(); align >= 64 {
		c.fail(ErrUnsupported, "more than one memory")
	}
	c.leb(10)
}

func (c *cursor) bulk(i *instruction) {
	switch sub := i.op & 0xffff; {
	case sub <= 7: // saturating truncation
	case sub == 8, sub == 10, sub == 12, sub == 14: // two indices
		i.index, i.second = c.u32(), c.u32()
	case sub == 9, sub == 11, sub == 13, sub >= 15 && sub <= 17: // one index
		i.index = c.u32()
	default:
		c.fail(ErrUnsupported, "opcode 0xfc %d", sub)
	}
}

func (c *cursor) simd(sub uint32) {
	switch {
	case sub <= 11, sub == 92, sub == 93: // loads and stores
		c.memarg()
	case sub == 12, sub == 13: // v128.const, i8x16.shuffle
		c.skip(16)
	case sub >= 21 && sub <= 34: // lanes
		c.skip(1)
	case sub >= 84 && sub <= 91: // lane loads and stores
		c.memarg()
		c.skip(1)
	case sub <= 255:
	default:
		c.fail(ErrUnsupported, "relaxed SIMD %d", sub)
	}
}

func (c *cursor) atomic(sub uint32) {
	switch {
	case sub <= 2, sub >= 0x10 && sub <= 0x4e: // notify and wait, loads to exchanges
		c.memarg()
	case sub == 3: // fence
		c.skip(1)
	default:
		c.fail(ErrUnsupported, "opcode 0xfe %d", sub)
	}
}
