package meter

// maxLocals is how many locals wazero accepts in a function.
const maxLocals = 50000

// region is a stretch of code that is paid for at once: a function outside of
// its loops, or a loop outside of its inner loops.
type region struct{ cost int64 }

// function rewrites one function body: locals, then instructions.
func (w *rewriter) function(body []byte, params int) []byte {
	c := &cursor{b: body}
	groups := c.count(2)
	start := c.pos
	locals := params
	for range groups {
		n := c.u32()
		if int64(locals)+int64(n) > maxLocals {
			c.fail(ErrInvalid, "more than %d locals", maxLocals)
			break
		}
		locals += int(n)
		c.byte()
	}
	code := c.pos
	regions := w.price(c, locals)
	if c.err != nil {
		w.fail(c.err)
		return nil
	}
	out := make([]byte, 0, len(body)+len(body)/4+32)
	out = appendU32(out, uint32(groups+1))
	out = append(out, body[start:code]...)
	out = append(out, 1, 0x7e) // one more local, an i64
	return w.emit(out, &cursor{b: body, pos: code}, regions, uint32(locals))
}

// price walks over the instructions up to the end of the function, checks every
// index, and returns what each region costs, in the order of their headers.
func (w *rewriter) price(c *cursor, locals int) []region {
	regions := []region{{}}
	current := []int{0} // region by control depth
	for c.more() {
		i := c.next()
		w.checkIndices(c, i, locals)
		top := current[len(current)-1]
		regions[top].cost++
		w.stateful = w.stateful || changesTables(i.op)
		switch i.op {
		case opLoop:
			regions = append(regions, region{})
			current = append(current, len(regions)-1)
		case opBlock, opIf, opTryTable:
			current = append(current, top)
		case opEnd:
			current = current[:len(current)-1]
			if len(current) == 0 {
				if c.pos != len(c.b) {
					c.fail(ErrInvalid, "code after the end of a function")
				}
				return regions
			}
		}
	}
	c.fail(ErrInvalid, "function without an end")
	return nil
}

// changesTables says whether an instruction changes a table or drops a segment.
func changesTables(op uint32) bool {
	switch op {
	case opTableSet, opTableInit, opTableCopy, opTableGrow, opTableFill, opDataDrop, opElemDrop:
		return true
	}
	return false
}

// checkIndices refuses an index that only exists once the module is rewritten.
func (w *rewriter) checkIndices(c *cursor, i instruction, locals int) {
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
	}
}

func (w *rewriter) checkTables(c *cursor, i instruction) {
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

// emit writes the instructions with the charges in place.
func (w *rewriter) emit(out []byte, c *cursor, regions []region, temp uint32) []byte {
	next := 1
	out = w.charge(out, regions[0].cost, temp)
	for c.more() {
		i := c.next()
		switch i.op {
		case opCall, opReturnCall, opRefFunc:
			out = append(out, byte(i.op))
			out = appendU32(out, w.shift(i.index))
		case opLoop:
			out = append(out, i.raw...)
			out = w.charge(out, regions[next].cost, temp)
			next++
		case opMemoryGrow, opMemoryInit, opMemoryCopy, opMemoryFill, opTableInit, opTableCopy, opTableGrow, opTableFill:
			out = append(out, opCall)
			out = appendU32(out, w.helper(i))
		default:
			out = append(out, i.raw...)
		}
	}
	if c.err != nil {
		w.fail(c.err)
	}
	return out
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

// refillIfNegative calls the host if the i64 on the stack is below zero.
func (w *rewriter) refillIfNegative(out []byte) []byte {
	out = append(out, 0x42, 0, 0x53, opIf, 0x40, opCall) // i64.const 0, i64.lt_s, if, call
	out = appendU32(out, w.refill)
	return append(out, opEnd)
}
