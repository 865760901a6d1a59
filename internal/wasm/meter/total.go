package meter

import "fmt"

// What all functions of a module together may ask of a compiler. The largest sums that we have seen in real guests are
// 9,891 locals and 377,412 operands, in 2 MB of code.
const (
	// maxAllLocals bounds the locals that functions declare: an engine keeps eight bytes of each while the module lives.
	maxAllLocals = 2_000_000
	// maxAllMoved bounds the operands that branches and calls move, see maxMoved.
	maxAllMoved = 10_000_000
	// maxHelpers bounds the functions that the rewriter adds.
	maxHelpers = 10_000
)

// total sums up the effort of functions.
type total struct{ locals, moved int }

// add adds a function, and refuses it when the sums are too large.
func (t *total) add(e *effort) error {
	t.locals += e.declared
	t.moved += e.moved()
	switch {
	case t.locals > maxAllLocals:
		return fmt.Errorf("%w: functions 0 to %d have %d locals together, and %d are allowed", ErrLimit, e.function, t.locals, maxAllLocals)
	case t.moved > maxAllMoved:
		return fmt.Errorf("%w: functions 0 to %d have %d operands of branches and calls together, and %d are allowed",
			ErrLimit, e.function, t.moved, maxAllMoved)
	}
	return nil
}

// rangeBranches is how many branches an engine makes of an instruction that works on a range.
const rangeBranches = 3

// onRange reports whether an instruction works on a range of memory or of a table.
func onRange(op uint32) bool {
	switch op {
	case opMemoryInit, opMemoryCopy, opMemoryFill, opTableInit, opTableCopy, opTableFill:
		return true
	}
	return false
}

// exits is for how many places where code leaves the function an instruction counts: those that call or may trap. An
// engine makes several kilobytes of each.
func exits(op uint32) int {
	switch {
	case op == opCallIndirect, op == opReturnCallIndirect, onRange(op):
		return 3
	case calls(op),
		op >= 0x25 && op <= 0x3e, op == opMemoryGrow, // tables and memory
		op >= 0x6d && op <= 0x70, op >= 0x7f && op <= 0x82, // division
		op >= 0xa8 && op <= 0xab, op >= 0xae && op <= 0xb1, // truncation
		op == opThrow, op == opThrowRef,
		op > 0xff && !sizeless(op):
		return 1
	}
	return 0
}

// sizeless reports whether an instruction with a prefix computes, and touches neither memory nor a table.
func sizeless(op uint32) bool {
	switch prefix, sub := op>>16, op&0xffff; prefix {
	case 0xfc:
		return sub < 8
	case 0xfd:
		return sub > 11 && (sub < 84 || sub > 93)
	}
	return false
}
