package meter

import "github.com/mortise-dev/mortise/internal/wasm"

// Opcodes of what writes to memory.
const (
	opI32Store        = 0x36
	opI64Store        = 0x37
	opF32Store        = 0x38
	opF64Store        = 0x39
	opI32Store8       = 0x3a
	opI32Store16      = 0x3b
	opI64Store8       = 0x3c
	opI64Store16      = 0x3d
	opI64Store32      = 0x3e
	opV128Store       = 0xfd<<16 | 11
	opV128Store8Lane  = 0xfd<<16 | 88
	opV128Store64Lane = 0xfd<<16 | 91
	// From the first of these on all atomic instructions write.
	opAtomicStore = 0xfe<<16 | 0x17
	opAtomicLast  = 0xfe<<16 | 0x4e
)

// stored returns the type of what an instruction stores at an address, 0 if it does not.
func stored(op uint32) wasm.ValueType {
	switch op {
	case opI32Store, opI32Store8, opI32Store16:
		return wasm.I32
	case opI64Store, opI64Store8, opI64Store16, opI64Store32:
		return wasm.I64
	case opF32Store:
		return wasm.F32
	case opF64Store:
		return wasm.F64
	}
	if op == opV128Store || op >= opV128Store8Lane && op <= opV128Store64Lane {
		return wasm.V128
	}
	return 0
}

// writesAtomically tells of an atomic instruction that writes to memory. They take their
// operands in many ways and are rare, so each counts as a write outside of the windows.
func writesAtomically(op uint32) bool { return op >= opAtomicStore && op <= opAtomicLast }

// lookBranches is how many branches stand before a store whose place is looked at.
const lookBranches = 2

// windows are the globals of Result.Windows.
type windows struct {
	on bool
	// first is the index of the first of the four.
	first uint32
	// stores tells that the function which is rewritten needs storeLocals.
	stores bool
}

// storeLocals declares an address, and what is stored: of each type one, in the order
// of their codes from wasm.I32 down.
func storeLocals() []byte {
	out := []byte{1, byte(wasm.I32)}
	for typ := wasm.I32; typ >= wasm.V128; typ-- {
		out = append(out, 1, byte(typ))
	}
	return out
}

// inside leaves whether the address in a local, plus an offset, is in window n, 0 or 1. A sum beyond 32 bits
// may seem to be, but the store traps then.
func (w *rewriter) inside(out []byte, address, offset, n uint32) []byte {
	out = appendU32(append(out, opLocalGet), address)
	if offset != 0 {
		out = appendI64(append(out, opI32Const), int64(int32(offset))) // its bits
		out = append(out, opI32Add)
	}
	out = append(appendU32(append(out, opGlobalGet), w.windows.first+2*n), opI32Sub)
	out = appendU32(append(out, opGlobalGet), w.windows.first+2*n+1)
	return append(out, 0x49) // i32.lt_u
}

// unseen opens the first window to everything.
func (w *rewriter) unseen(out []byte) []byte {
	out = appendI64(append(out, opI32Const), -1)
	return appendU32(append(out, opGlobalSet), w.windows.first+1)
}

// store writes an instruction that stores, behind a look at where. No function is called
// and nothing is kept on the way, so that the engine's registers stay as they are; the else
// branches are those that are not taken, see refillIfNegative.
func (w *rewriter) store(out []byte, i instruction, temp uint32) []byte {
	offset, ok := offsetOf(i)
	if !ok {
		return append(w.unseen(out), i.raw...) // for the engine to refuse
	}
	w.windows.stores = true
	address, value := temp+1, temp+2+uint32(wasm.I32-stored(i.op))
	out = appendU32(append(out, opLocalSet), value)
	out = appendU32(append(out, opLocalTee), address)
	out = append(w.inside(out, address, offset, 0), opIf, 0x40, opElse)
	out = append(w.inside(out, address, offset, 1), opIf, 0x40, opElse)
	out = append(w.unseen(out), opEnd, opEnd)
	out = appendU32(append(out, opLocalGet), value)
	return append(out, i.raw...)
}

// offsetOf is that of an instruction's memarg, if it has 32 bits.
func offsetOf(i instruction) (uint32, bool) {
	c := &cursor{b: i.raw, pos: 1}
	if i.op > 0xff {
		c.u32()
	}
	c.u32() // alignment
	offset := c.u32()
	return offset, c.err == nil
}

// seen is the body of a helper that writes to a range, whose start is in local 0 and whose length is in local
// 2, behind a look at whether it begins and ends in a window.
func (w *rewriter) seen(body []byte) []byte {
	if !w.windows.on {
		return body
	}
	a := &asm{}
	for n := range uint32(2) {
		start := w.windows.first + 2*n
		a.b = w.inside(a.b, 0, 0, n)
		a.global(start+1).get(0).global(start).op(opI32Sub, opI32Sub) // what is left of the window
		a.get(2).op(0x4f, 0x71, opIf, 0x40, opElse)                   // i32.ge_u, i32.and
	}
	a.b = w.unseen(a.b)
	a.op(opEnd, opEnd)
	return append(append([]byte{0}, a.b...), body[1:]...)
}
