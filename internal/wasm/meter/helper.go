package meter

import (
	"fmt"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// chunk is how many bytes of a range are worked on between two charges.
const chunk = 1 << 16

// chunkCost is what each chunk of a longer range costs but the last: four times as much as
// bytes of shorter ranges. Memory that was never touched takes the kernel that much longer, and the collector waits
// for what may be done in one slice.
const chunkCost = chunk >> 4

// pageCost is what memory.grow costs for each page.
const pageCost = 256

// throwCost is what throw and throw_ref cost besides their place in a region: the engine
// leaves native code and walks over the stack, which takes as long as that much of
// ordinary code.
const throwCost = 1 << 15

// helperFunc is a function that the rewriter adds.
type helperFunc struct {
	params, results []wasm.ValueType
	body            []byte
}

// helper returns the index of the function that replaces a bulk instruction.
func (w *rewriter) helper(i instruction) uint32 {
	if index, ok := w.helperIndex[string(i.raw)]; ok {
		return index
	}
	if len(w.helpers) >= maxHelpers {
		w.fail(fmt.Errorf("%w: more than %d different instructions that work on ranges", ErrLimit, maxHelpers))
		return 0
	}
	index := w.addHelper(w.buildHelper(i))
	w.helperIndex[string(i.raw)] = index
	return index
}

func (w *rewriter) addHelper(f helperFunc) uint32 {
	w.helpers = append(w.helpers, f)
	return uint32(w.funcs + len(w.helpers))
}

func (w *rewriter) buildHelper(i instruction) helperFunc {
	three := []wasm.ValueType{wasm.I32, wasm.I32, wasm.I32}
	switch i.op {
	case opMemoryFill:
		return helperFunc{params: three, body: w.chunked(i, forwardFill)}
	case opMemoryCopy:
		return helperFunc{params: three, body: w.chunkedCopy(i)}
	case opMemoryInit:
		return helperFunc{params: three, body: w.paid(i, 2, 6)}
	case opTableInit, opTableCopy:
		return helperFunc{params: three, body: w.paid(i, 2, 0)}
	case opTableFill:
		elem := w.elem(i.index)
		return helperFunc{params: []wasm.ValueType{wasm.I32, elem, wasm.I32}, body: w.paid(i, 2, 0)}
	case opTableGrow:
		elem := w.elem(i.index)
		return helperFunc{
			params: []wasm.ValueType{elem, wasm.I32}, results: []wasm.ValueType{wasm.I32}, body: w.tableGrow(i),
		}
	case opAtomicWait32:
		params := []wasm.ValueType{wasm.I32, wasm.I32, wasm.I64}
		return helperFunc{params: params, results: three[:1], body: wait(i, 0x10, 0x47)} // i32.atomic.load, i32.ne
	case opAtomicWait64:
		params := []wasm.ValueType{wasm.I32, wasm.I64, wasm.I64}
		return helperFunc{params: params, results: three[:1], body: wait(i, 0x11, 0x52)} // i64.atomic.load, i64.ne
	default:
		return helperFunc{params: three[:1], results: three[:1], body: w.memoryGrow(i)}
	}
}

// wait replaces an instruction that waits until another thread notifies. There is
// no other thread, so it answers at once: that the value was not as expected, or
// that the time is over. One that would wait for ever traps. The engine's own
// instruction would block outside of native code, where nothing can stop it, and
// would keep a record of each address.
func wait(i instruction, load, differs byte) []byte {
	a := &asm{}
	a.get(0).op(0xfe, load).bytes(i.raw[2:]).get(1).op(differs)
	a.op(opIf, 0x40).i32(1).op(0x0f, opEnd)                        // return: not equal
	a.get(2).i64(0).op(0x53, opIf, 0x40).op(0x00).op(opEnd).i32(2) // i64.lt_s: unreachable
	return a.body()
}

func (w *rewriter) elem(table uint32) wasm.ValueType {
	if i := int(table) - len(w.importedTables); i >= 0 {
		return w.module.Tables[i].Elem
	}
	return w.importedTables[table]
}

// asm writes code of helpers.
type asm struct{ b []byte }

func (a *asm) op(ops ...byte) *asm    { a.b = append(a.b, ops...); return a }
func (a *asm) get(local uint32) *asm  { a.b = appendU32(append(a.b, 0x20), local); return a }
func (a *asm) set(local uint32) *asm  { a.b = appendU32(append(a.b, 0x21), local); return a }
func (a *asm) i32(v int64) *asm       { a.b = appendI64(append(a.b, 0x41), v); return a }
func (a *asm) i64(v int64) *asm       { a.b = appendI64(append(a.b, 0x42), v); return a }
func (a *asm) call(f uint32) *asm     { a.b = appendU32(append(a.b, opCall), f); return a }
func (a *asm) bytes(b []byte) *asm    { a.b = append(a.b, b...); return a }
func (a *asm) wide(local uint32) *asm { return a.get(local).op(0xad) } // i64.extend_i32_u
func (a *asm) move(local uint32, by int64) *asm {
	return a.get(local).i32(by).op(0x6a).set(local) // i32.add
}

// body wraps code without locals of its own into a function body.
func (a *asm) body() []byte { return append(append([]byte{0}, a.b...), opEnd) }

// chargeBody is the helper that takes its argument from the counter.
func (w *rewriter) chargeBody() []byte {
	out := appendU32([]byte{0, opGlobalGet}, w.counter)
	out = append(out, 0x20, 0, 0x7d, opGlobalSet) // local.get 0, i64.sub
	out = appendU32(out, w.counter)
	out = appendU32(append(out, opGlobalGet), w.counter)
	return append(w.refillIfNegative(out), opEnd)
}

// payFor charges one for each 2^shift units of the i32 in a local, and one.
func (w *rewriter) payFor(a *asm, local uint32, shift int64) *asm {
	return a.wide(local).i64(shift).op(0x88).i64(1).op(0x7c).call(w.chargeFunc) // i64.shr_u, i64.add
}

// paid charges for the length in a local and runs the instruction.
func (w *rewriter) paid(i instruction, length uint32, shift int64) []byte {
	a := &asm{}
	w.payFor(a, length, shift).get(0).get(1).get(2).bytes(i.raw)
	return a.body()
}

// inBounds leaves whether a range that starts at local, and whose length is in
// local 2, stays within memory.
func (a *asm) inBounds(local uint32) *asm {
	return a.wide(local).wide(2).op(0x7c).op(0x3f, 0, 0xad).i64(16).op(0x86, 0x58) // memory.size, shl, le_u
}

// short runs a range instruction at once when its range is a chunk at most, as nearly
// all are: without a call, and whether it is in bounds or not.
func (w *rewriter) short(a *asm, i instruction) {
	a.get(2).i32(chunk).op(0x4d, opIf, 0x40) // i32.le_u
	a.bytes(appendU32([]byte{opGlobalGet}, w.counter))
	a.wide(2).i64(6).op(0x88).i64(1).op(0x7c, 0x7d) // i64.shr_u, i64.add, i64.sub
	a.bytes(appendU32([]byte{opGlobalSet}, w.counter)).bytes(appendU32([]byte{opGlobalGet}, w.counter))
	a.b = w.refillIfNegative(a.b)
	a.get(0).get(1).get(2).bytes(i.raw).op(0x0f, opEnd) // return
}

// forwardFill advances the destination only.
func forwardFill(a *asm) { a.move(0, chunk) }

// chunked runs a range instruction from low to high, a chunk at a time. A range
// that is out of bounds goes to the instruction whole, so that it traps before
// it has written anything.
func (w *rewriter) chunked(i instruction, advance func(*asm)) []byte {
	a := &asm{}
	if i.op == opMemoryFill {
		w.short(a, i)
	}
	a.inBounds(0)
	if i.op == opMemoryCopy {
		a.inBounds(1).op(0x71) // i32.and
	}
	a.op(opIf, 0x40, opLoop, 0x40)
	a.get(2).i32(chunk).op(0x4b, opIf, 0x40) // i32.gt_u
	a.i64(chunkCost).call(w.chargeFunc)
	a.get(0).get(1).i32(chunk).bytes(i.raw)
	advance(a)
	a.move(2, -chunk).op(0x0c, 1, opEnd, opEnd, opEnd) // br to the loop
	w.payFor(a, 2, 6).get(0).get(1).get(2).bytes(i.raw)
	return a.body()
}

// chunkedCopy goes from low to high, or from high to low when the destination
// stands behind the source, so that overlapping ranges come out right.
func (w *rewriter) chunkedCopy(i instruction) []byte {
	forward := w.addHelper(helperFunc{
		params: []wasm.ValueType{wasm.I32, wasm.I32, wasm.I32},
		body:   w.chunked(i, func(a *asm) { a.move(0, chunk).move(1, chunk) }),
	})
	a := &asm{}
	w.short(a, i)
	a.get(0).get(1).op(0x4d, opIf, 0x40) // i32.le_u
	a.get(0).get(1).get(2).call(forward).op(0x0f, opEnd)
	a.inBounds(0).inBounds(1).op(0x71, opIf, 0x40, opLoop, 0x40)
	a.get(2).i32(chunk).op(0x4b, opIf, 0x40)
	a.i64(chunkCost).call(w.chargeFunc)
	a.move(2, -chunk)
	a.get(0).get(2).op(0x6a).get(1).get(2).op(0x6a).i32(chunk).bytes(i.raw)
	a.op(0x0c, 1, opEnd, opEnd, opEnd)
	w.payFor(a, 2, 6).get(0).get(1).get(2).bytes(i.raw)
	return a.body()
}

// memoryGrow charges for the pages, unless there are more than a memory can have.
func (w *rewriter) memoryGrow(i instruction) []byte {
	a := &asm{}
	a.get(0).i32(1<<16).op(0x4d, opIf, 0x40) // i32.le_u
	a.wide(0).i64(pageCost).op(0x7e).call(w.chargeFunc).op(opEnd)
	a.get(0).bytes(i.raw)
	return a.body()
}

// tableGrow answers -1 when all tables together would have more elements than the
// bound, and else charges for the elements.
func (w *rewriter) tableGrow(i instruction) []byte {
	a := &asm{}
	a.wide(1)
	for n := range len(w.importedTables) + len(w.module.Tables) {
		size := appendU32([]byte{0xfc, 16}, uint32(n)) // table.size
		a.bytes(size).op(0xad, 0x7c)                   // i64.extend_i32_u, i64.add
	}
	a.i64(int64(w.maxTable)).op(0x56, opIf, 0x40) // i64.gt_u
	a.i32(-1).op(0x0f, opEnd)                     // return
	w.payFor(a, 1, 0).get(0).get(1).bytes(i.raw)
	return a.body()
}
