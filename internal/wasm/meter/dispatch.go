package meter

// dispatch is a loop that only dispatches: blocks directly behind its header, and
// a br_table that jumps behind them.
type dispatch struct {
	// header is the site of the loop, pieces are those behind its blocks.
	header int
	pieces []int
	// jump is what the way from the header to a piece costs. Blocks cost nothing.
	jump int64
	// closed means that the br_table leads to nothing but the pieces, so that one
	// charge, that of the piece, is enough for the jump too.
	closed bool
	// local is the one that the br_table takes its index from, as it is, and labels are
	// where that leads to; none when the index is computed or the loop takes operands.
	local  uint32
	labels []uint32
	// outside is how many levels of control there are around the blocks, the loop's too.
	outside, blocks int
}

// maxFolded is how much a function's entry may cost for its pieces to pay for it.
const maxFolded = 16

// fold makes the pieces of dispatch loops pay for the way to them: the jump, and the
// entry of the function if it leads straight to the loop whose site is number 1.
func fold(sites []site, all []*dispatch, entered bool) {
	for _, d := range all {
		if !d.closed {
			continue
		}
		more := d.jump
		if entered && d.header == 1 && sites[0].cost <= maxFolded {
			more += sites[0].cost
			sites[0].kind = nothing
		}
		for _, p := range d.pieces {
			sites[p].cost += more
			sites[p].kind = charges
		}
		sites[d.header].kind = checks
	}
}

// maxSelector is how many instructions may compute the index of a dispatch.
const maxSelector = 8

// dispatchScan recognises the head of a dispatch loop.
type dispatchScan struct {
	active           bool
	blocks, selector int
	// straight means that there was no way past the first loop so far, and entered
	// that this loop has come.
	straight, entered bool
}

// next takes the next instruction. At the br_table of a dispatch it returns how
// many blocks belong to it.
func (d *dispatchScan) next(op uint32) int {
	if op == opLoop {
		*d = dispatchScan{active: true, entered: d.entered || d.straight}
		return 0
	}
	d.straight = d.straight && (op == opBlock || goesOn(op))
	if !d.active {
		return 0
	}
	switch {
	case op == opBlock && d.selector == 0:
		d.blocks++
	case op == opBrTable && d.blocks > 1:
		d.active = false
		return d.blocks
	case plainSelector(op) && d.selector < maxSelector:
		d.selector++
	default:
		d.active = false
	}
	return 0
}

// goesOn reports whether an instruction always leads to the next one, and to no other
// function: nop, drop, select, and what works on locals, globals, memory and numbers.
func goesOn(op uint32) bool {
	return op == 0x01 || op == 0x1a || op == 0x1b || op >= opLocalGet && op <= opGlobalSet || op >= 0x28 && op <= 0x3f || op >= opI32Const && op <= 0xc4
}

// plainSelector reports whether an instruction may compute an index: locals,
// globals, constants and arithmetic of i32.
func plainSelector(op uint32) bool {
	return op >= opLocalGet && op <= opGlobalGet || op == opI32Const || op >= opI32Add && op <= 0x78
}
