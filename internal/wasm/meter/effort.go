package meter

import (
	"cmp"
	"fmt"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// What one function may ask of a compiler. wazero's takes time and memory that grow with the product of these
// numbers, looks at no deadline before it is done with a function, and has no bounds of its own: without ours, 30 KB
// could take gigabytes and minutes. The largest functions that we have seen in real guests have 96,756 bytes, 9,158
// branches, 53 loops, 6 of them nested, 5,843 targets, 2,983 blocks in one another, 14 ifs in one another, 19,002 exits and
// 34,674 operands.
const (
	maxBody     = 1 << 20
	maxBranches = 25_000
	maxLoops    = 2_000
	maxNested   = 100
	// maxDepth bounds blocks in one another, maxIfs those of them that are ifs.
	maxDepth = 10_000
	maxIfs   = 1_000
	// maxExits bounds the places where code may leave the function, see exits.
	maxExits = 60_000
	// maxTargets is that of the tables of br_table, as many as one of them may have in browsers.
	maxTargets = 65_520
	// maxLoopLocals bounds loops times the locals that are used.
	maxLoopLocals = 200_000
	// maxBranchLocals bounds branches times the locals that are used.
	maxBranchLocals = 2_000_000
	// maxMoved bounds the operands that branches and calls move, if each moves as many as the one with the most.
	maxMoved = 200_000
)

// effort counts what a function asks of a compiler.
type effort struct {
	function, body, declared                       int
	branches, loops, nested, targets, calls, exits int
	// inLoops and inIfs are how many loops and ifs are around the instruction, open the opcodes of all levels of control.
	inLoops, inIfs int
	open           []uint32
	// depth and ifs are the most levels, and the most ifs, that an instruction has around it.
	depth, ifs int
	// used is a bit for each local, and locals how many have one.
	used   []uint64
	locals int
	// arity is the most operands that a block or the function takes and leaves, callArity that of a call.
	arity, callArity int
}

// reset begins a function of a type, whose body has so many bytes and which has so many locals.
func (e *effort) reset(function int, t *wasm.FuncType, body, declared int) {
	*e = effort{
		function: function, body: body, declared: declared,
		open: e.open[:0], used: e.used[:0], arity: len(t.Params) + len(t.Results),
	}
}

// take counts an instruction.
func (e *effort) take(m *wasm.Module, i *instruction) {
	e.exits += exits(i.op)
	if onRange(i.op) {
		e.branches += rangeBranches
	}
	switch i.op {
	case opLoop, opBlock, opIf, opTryTable:
		e.enter(m, i)
	case opEnd:
		e.leave()
	case opElse, opBr, opBrIf, opBrOnNull, opBrOnNonNull, opReturn:
		e.branches++
	case opBrTable:
		e.branches++
		e.targets += int(i.second)
	case opLocalGet, opLocalSet, opLocalTee:
		e.use(int(i.index))
	case opCall, opReturnCall:
		e.calls++
		if t := m.TypeOf(i.index); t != nil {
			e.callArity = max(e.callArity, len(t.Params)+len(t.Results))
		}
	case opCallIndirect, opReturnCallIndirect, opCallRef, opReturnCallRef:
		e.calls++
		e.callArity = max(e.callArity, arityOf(m, int64(i.index)))
	}
}

func arityOf(m *wasm.Module, index int64) int {
	if index < 0 || index >= int64(len(m.Types)) {
		return 1
	}
	return len(m.Types[index].Params) + len(m.Types[index].Results)
}

func (e *effort) enter(m *wasm.Module, i *instruction) {
	e.branches++
	e.targets += int(i.second) // those of a try_table's catches
	e.arity = max(e.arity, arityOf(m, i.blockType))
	e.open = append(e.open, i.op)
	e.depth = max(e.depth, len(e.open))
	switch i.op {
	case opLoop:
		e.loops++
		e.inLoops++
		e.nested = max(e.nested, e.inLoops)
	case opIf:
		e.inIfs++
		e.ifs = max(e.ifs, e.inIfs)
	}
}

func (e *effort) leave() {
	if last := len(e.open) - 1; last >= 0 {
		switch e.open[last] {
		case opLoop:
			e.inLoops--
		case opIf:
			e.inIfs--
		}
		e.open = e.open[:last]
	}
}

// use counts a local once. A number that no function may have is refused elsewhere.
func (e *effort) use(local int) {
	const word = 64
	if local > maxLocals {
		return
	}
	for local/word >= len(e.used) {
		e.used = append(e.used, 0)
	}
	if bit := uint64(1) << (local % word); e.used[local/word]&bit == 0 {
		e.used[local/word] |= bit
		e.locals++
	}
}

// check refuses a function that asks for too much.
func (e *effort) check() error {
	for _, b := range []struct {
		what      string
		got, most int
	}{
		{"bytes", e.body, maxBody},
		{"branches", e.branches, maxBranches},
		{"loops", e.loops, maxLoops},
		{"loops in one another", e.nested, maxNested},
		{"blocks in one another", e.depth, maxDepth},
		{"ifs in one another", e.ifs, maxIfs},
		{"targets of br_table and catches", e.targets, maxTargets},
		{"calls and instructions that may trap", e.exits, maxExits},
		{"loops times locals", e.loops * e.locals, maxLoopLocals},
		{"branches times locals", e.branches * e.locals, maxBranchLocals},
		{"operands of branches and calls", e.moved(), maxMoved},
	} {
		if b.got > b.most {
			return fmt.Errorf("%w: function %d has %d %s, and %d are allowed", ErrLimit, e.function, b.got, b.what, b.most)
		}
	}
	return nil
}

// moved is how many operands branches and calls move, if each moves as many as the one with the most.
func (e *effort) moved() int { return (e.branches+e.targets)*e.arity + e.calls*e.callArity }

// Check refuses a module that asks for too much, as [ErrLimit]: one of its functions has more locals than it may, or more
// of what compilers are slow at, or all functions together have. [Rewrite] and [Bound] do it; a caller that gives a module
// to an engine as it is must too.
func Check(m *wasm.Module) error {
	s := section(m, secCode)
	if s == nil {
		return nil
	}
	c := &cursor{b: s.Body}
	n := c.count(2)
	if n != len(m.Funcs) {
		c.fail(ErrInvalid, "%d function bodies for %d functions", n, len(m.Funcs))
	}
	var e effort
	var all total
	var ins instruction
	for i := range n {
		body := &cursor{b: c.take(c.count(1)), typed: true}
		if c.err != nil {
			break
		}
		t := &m.Types[m.Funcs[i]]
		e.reset(m.ImportedFuncs+i, t, len(body.b), body.locals(len(t.Params)))
		for body.more() {
			body.next(&ins)
			e.take(m, &ins)
		}
		if err := cmp.Or(body.err, e.check(), all.add(&e)); err != nil {
			return fmt.Errorf("meter: %w", err)
		}
	}
	if c.err != nil {
		return fmt.Errorf("meter: %w", c.err)
	}
	return nil
}
