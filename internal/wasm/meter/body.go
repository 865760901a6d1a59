package meter

import (
	"cmp"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// site is a place at which a charge stands: behind the instruction that ends at
// an offset. It pays for a region: the code up to the next site that the same
// control structure can reach.
type site struct {
	at   int
	cost int64
	kind siteKind
	// arm is that of code behind a branch, which may be skipped; before is the site whose code leads there.
	arm    bool
	before int
}

// siteKind is the kind of a site.
type siteKind int

const (
	// The zero kind takes the cost and looks whether the counter is used up.
	_ siteKind = iota
	// charges only takes the cost: a site that checks comes before or after it in
	// every circle that the code can take.
	charges
	// checks only looks: others pay for the region.
	checks
	// nothing is there.
	nothing
)

// minArm is how much code behind a branch is paid for where it begins. Less is paid for with what comes before.
const minArm = 24

// frame is one level of control while a function is priced.
type frame struct {
	// site is the index of the one that pays for the code of this level.
	site int
	// dispatch is that of a block of a dispatch loop.
	dispatch *dispatch
	// jumps is that of the loop itself, once its br_table has come.
	jumps *dispatch
	// bare is a loop that takes no operands.
	bare bool
	// outer is the site that led to an if.
	outer int
}

// function rewrites one function body: locals, then instructions.
func (w *rewriter) function(index int, body []byte) []byte {
	t := &w.module.Types[w.module.Funcs[index]]
	c := &cursor{b: body}
	groups := c.count(2)
	start := c.pos
	c.pos = 0
	locals := c.locals(len(t.Params))
	w.effort.reset(w.importedFuncs+index, t, len(body), locals)
	code := c.pos
	w.price(c, locals)
	if c.err != nil {
		w.fail(c.err)
		return nil
	}
	out := appendU32(make([]byte, 0, len(body)+len(body)/4+32), uint32(groups+1))
	out = append(append(out, body[start:code]...), 1, byte(wasm.I64)) // one more local
	return w.emit(out, body, code, uint32(locals))
}

// price walks over the instructions up to the end of the function, checks every
// index, and notes in w.pricing where to charge how much, and which instructions will
// be written anew, in the order of the code.
//
// The first site is the function's entry, and each loop header is one. A loop
// that only dispatches, as Go's compiler wraps around every function, would be paid
// for as a whole at each jump; there the end of each of its blocks is a site. Where
// every way through the header ends at one of them, the header has none, and neither
// has the entry of a function that goes straight to it.
func (w *rewriter) price(c *cursor, locals int) {
	p := &w.pricing
	p.reset(c)
	var i instruction
	for c.more() {
		c.next(&i)
		w.checkIndices(c, &i, locals)
		w.effort.take(w.module, &i)
		if c.err != nil {
			break
		}
		w.stateful = w.stateful || changesTables(i.op)
		if w.changes(i.op) {
			p.changed = append(p.changed, i)
		}
		if p.next(&i) {
			if c.pos != len(c.b) {
				c.fail(ErrInvalid, "code after the end of a function")
			}
			c.err = cmp.Or(c.err, w.effort.check(), w.total.add(&w.effort))
			p.done()
			return
		}
	}
	c.fail(ErrInvalid, "function without an end")
}

// pricing is the walk over one function.
type pricing struct {
	sites      []site
	frames     []frame
	scan       dispatchScan
	dispatches []*dispatch
	// changed are the instructions that will be written anew.
	changed []instruction
	// body is that of the function, and starts are where its two last instructions are.
	body   []byte
	starts [2]int
	// calling means that the function calls another one.
	calling bool
}

// reset begins a function whose code is at the cursor.
func (p *pricing) reset(c *cursor) {
	*p = pricing{
		sites: append(p.sites[:0], site{at: c.pos}), frames: append(p.frames[:0], frame{}), scan: dispatchScan{straight: true},
		dispatches: p.dispatches[:0], changed: p.changed[:0], body: c.b,
	}
}

// next takes an instruction and reports whether the function has ended.
func (p *pricing) next(i *instruction) (ended bool) {
	top := &p.frames[len(p.frames)-1]
	p.sites[top.site].cost++
	p.calling = p.calling || calls(i.op)
	if n := p.scan.next(i.op); n > 0 {
		p.dispatch(n, i)
	}
	switch i.op {
	case opLoop:
		p.sites = append(p.sites, site{at: i.end})
		p.frames = append(p.frames, frame{site: len(p.sites) - 1, bare: i.blockType < 0})
	case opBlock, opTryTable:
		p.frames = append(p.frames, frame{site: top.site})
	case opIf:
		p.frames = append(p.frames, frame{site: p.arm(i, top.site), outer: top.site})
	case opElse:
		top.site = p.arm(i, top.outer)
	case opBrIf:
		top.site = p.arm(i, top.site)
	case opBr:
		p.direct(i)
	case opEnd:
		ended = p.end(i)
	}
	p.starts = [2]int{p.starts[1], i.start}
	return ended
}

// arm adds the site of code that may be skipped.
func (p *pricing) arm(i *instruction, before int) int {
	p.sites = append(p.sites, site{at: i.end, kind: charges, arm: true, before: before})
	return len(p.sites) - 1
}

// mergeArms lets arms that are short be paid for by the code that leads there.
func (p *pricing) mergeArms() {
	for n := len(p.sites) - 1; n >= 0; n-- {
		if s := &p.sites[n]; s.arm && s.cost < minArm {
			p.sites[s.before].cost += s.cost
			s.kind = nothing
		}
	}
}

// dispatch notes a dispatch loop of n blocks at its br_table.
func (p *pricing) dispatch(n int, table *instruction) {
	outside := len(p.frames) - n
	d := &dispatch{
		header: p.frames[outside-1].site, jump: int64(p.scan.selector) + 1,
		closed: int64(table.index) < int64(n), outside: outside, blocks: n,
	}
	p.dispatches = append(p.dispatches, d)
	for k := range n {
		p.frames[outside+k].dispatch = d
	}
	p.labelled(d, table)
}

// end leaves a level of control.
func (p *pricing) end(i *instruction) bool {
	ended := p.frames[len(p.frames)-1]
	p.frames = p.frames[:len(p.frames)-1]
	if len(p.frames) == 0 {
		return true
	}
	if ended.dispatch != nil {
		p.sites = append(p.sites, site{at: i.end})
		p.frames[len(p.frames)-1].site = len(p.sites) - 1
		ended.dispatch.pieces = append(ended.dispatch.pieces, len(p.sites)-1)
	} else {
		top := &p.frames[len(p.frames)-1]
		top.site = p.arm(i, top.site)
	}
	return false
}

// done settles what stands at each site.
func (p *pricing) done() {
	p.mergeArms()
	fold(p.sites, p.dispatches, p.scan.entered)
	if !p.calling && p.sites[0].kind != nothing {
		p.sites[0].kind = charges // no circle leads through the entry
	}
}

// calls reports whether an instruction leads to another function of the module, or of
// another one.
func calls(op uint32) bool { return op >= opCall && op <= opReturnCallRef }

// changesTables reports whether an instruction changes a table or drops a segment.
func changesTables(op uint32) bool {
	switch op {
	case opTableSet, opTableInit, opTableCopy, opTableGrow, opTableFill, opDataDrop, opElemDrop:
		return true
	}
	return false
}

// checkIndices refuses an index that only exists once the module is rewritten.
func (w *rewriter) checkIndices(c *cursor, i *instruction, locals int) {
	check := func(what string, index uint32, total int) {
		if int64(index) >= int64(total) {
			c.fail(ErrInvalid, "%s %d of %d", what, index, total)
		}
	}
	if i.blockType >= 0 && i.blockType >= int64(w.types) {
		c.fail(ErrInvalid, "block type %d of %d", i.blockType, w.types)
	}
	switch i.op {
	case opLocalGet, opLocalSet, opLocalTee:
		check("local", i.index, locals)
	case opCall, opReturnCall, opRefFunc:
		check("function", i.index, w.funcs)
	case opCallIndirect, opReturnCallIndirect:
		check("type", i.index, w.types)
	case opGlobalGet, opGlobalSet:
		check("global", i.index, w.globals)
	case opTableInit, opTableGrow, opTableFill, opTableCopy:
		w.checkTables(c, i)
	case opMemoryInit, opDataDrop:
		if w.data.moved {
			check("data segment", i.index, len(w.data.indices))
		}
	}
}

func (w *rewriter) checkTables(c *cursor, i *instruction) {
	tables := []uint32{i.index}
	switch i.op {
	case opTableInit:
		tables = []uint32{i.second}
	case opTableCopy:
		tables = append(tables, i.second)
	}
	for _, t := range tables {
		if int64(t) >= int64(len(w.importedTables)+len(w.module.Tables)) {
			c.fail(ErrInvalid, "table %d", t)
		}
	}
}

// emit writes the code of a body from an offset on, with the charges in place.
func (w *rewriter) emit(out, body []byte, from int, temp uint32) []byte {
	changed := w.pricing.changed
	for _, s := range append(w.pricing.sites, site{at: len(body), kind: nothing}) {
		for len(changed) > 0 && changed[0].end <= s.at {
			i := changed[0]
			out = w.instruction(append(out, body[from:i.start]...), i)
			from, changed = i.end, changed[1:]
		}
		out = w.site(append(out, body[from:s.at]...), s, temp)
		from = s.at
	}
	return out
}

// changes reports whether an instruction is written anew, but for jumps that lead elsewhere.
func (w *rewriter) changes(op uint32) bool {
	switch op {
	case opCall, opReturnCall, opRefFunc, opThrow, opThrowRef:
		return true
	case opDataDrop:
		return w.data.moved
	}
	return w.replaced(op)
}

// instruction writes one that changes, with the indices of the new module.
func (w *rewriter) instruction(out []byte, i instruction) []byte {
	switch {
	case i.op == opCall || i.op == opReturnCall || i.op == opRefFunc:
		return appendU32(append(out, byte(i.op)), w.shift(i.index))
	case w.replaced(i.op):
		return appendU32(append(out, opCall), w.helper(w.data.renumber(i)))
	case i.op == opThrow || i.op == opThrowRef:
		out = appendI64(append(out, 0x42), throwCost) // i64.const
		out = appendU32(append(out, opCall), w.chargeFunc)
	}
	return append(out, w.data.renumber(i).raw...)
}

// replaced reports whether a helper does what an instruction does: one that works on
// a range, or one that waits.
func (w *rewriter) replaced(op uint32) bool {
	switch op {
	case opMemoryGrow, opMemoryInit, opMemoryCopy, opMemoryFill, opTableInit, opTableCopy, opTableGrow, opTableFill:
		return true
	case opAtomicWait32, opAtomicWait64:
		return w.shared // on a memory of its own a guest may not wait, and traps
	}
	return false
}

// site writes what stands at a site.
func (w *rewriter) site(out []byte, s site, temp uint32) []byte {
	switch s.kind {
	case nothing:
		return out
	case checks:
		return w.refillIfNegative(appendU32(append(out, opGlobalGet), w.counter))
	case charges:
		out = appendU32(append(out, opGlobalGet), w.counter)
		out = appendI64(append(out, 0x42), s.cost)                  // i64.const
		return appendU32(append(out, 0x7d, opGlobalSet), w.counter) // i64.sub
	default:
		return w.charge(out, s.cost, temp)
	}
}

// charge takes cost from the counter and calls the host when it is used up:
//
//	counter -= cost; if counter < 0 { refill() }
func (w *rewriter) charge(out []byte, cost int64, temp uint32) []byte {
	out = append(out, opGlobalGet)
	out = appendU32(out, w.counter)
	out = append(out, 0x42) // i64.const
	out = appendI64(out, cost)
	out = append(out, 0x7d, 0x22) // i64.sub, local.tee
	out = appendU32(out, temp)
	out = append(out, opGlobalSet)
	out = appendU32(out, w.counter)
	out = append(out, 0x20) // local.get
	out = appendU32(out, temp)
	return w.refillIfNegative(out)
}

// refillIfNegative calls the host if the i64 on the stack is below zero. The call
// stands in the else branch: the engine's registers are then those of the way that
// continues, which made ordinary code a tenth faster.
func (w *rewriter) refillIfNegative(out []byte) []byte {
	out = append(out, 0x42, 0, 0x59, opIf, 0x40, opElse, opCall) // i64.const 0, i64.ge_s, if, else, call
	out = appendU32(out, w.refill)
	return append(out, opEnd)
}
