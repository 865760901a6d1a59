// Package meter rewrites a core module so that it counts what it does and can
// be stopped: every function entry and every loop header takes the cost of the
// code that it leads to from a counter, and calls the host when the counter is
// used up. The host then refills it, or ends the call. While it does, Go's
// scheduler and garbage collector get their turn. Looking costs more than counting,
// so where no circle of the code leads through a place, there it is only counted:
// at the entry of a function without calls, and between two looks.
//
// # Cost model
//
// The unit is an instruction. Entering a function costs the number of
// instructions in its body that stand outside of loops, entering a loop and each
// further round costs the number of those inside it that stand outside of inner
// loops. Code that may be skipped, which is an arm of an if and what stands behind a br_if or a block, up to
// the end of the block around it, is paid for when it is reached if it has 24 instructions or more, and
// with what comes before it if not. So the count is an upper bound of what was
// executed, some 10 % above it in random code, and it is the same for the same module and input on every machine.
// A loop that only dispatches, which Go's compiler makes of every function, is
// paid for by the piece that is jumped to: up to the next label of the dispatch, the
// jump itself, and the entry of the function, if that leads straight to the loop
// and costs 16 at most. So such a function charges once a piece. A jump that is led
// straight to a piece, see below, costs the same; a header that pays for itself, because
// its table leads past the pieces too, is not paid for then.
// Instructions that work on ranges (memory.fill, memory.copy, memory.init,
// table.fill, table.copy, table.init) cost one, and one more for each 64 bytes or
// each element. memory.fill and memory.copy are paid for and run in chunks of
// 64 KiB, of which each but the last costs 4,096; the others, whose size segments and tables bound, at once. memory.grow
// costs 256 for each page; table.grow costs one, and one for each element, and is
// bounded by Options.MaxTable. throw and throw_ref cost 32,768 more when they are
// reached: the engine walks over the stack.
//
// # What is changed
//
// One import, one type, one i64 global and some functions are added; function
// indices move up by one everywhere, the name section included, where the added functions
// are named [HelperName]. All mutable
// globals that the module defines are exported under names that it does not
// use, so that a host can put them back. Debug sections are dropped, because
// their offsets would be wrong, and so are empty custom sections and a name section
// that cannot be read. Everything else stays byte for byte.
//
// A jump to the header of a loop that only dispatches, with the number of the piece set
// just before, leads to the piece itself when that lies ahead. Go's compiler makes such
// a jump of every if. It cannot close a circle, so there is nothing to look at on the
// way, and it saves the engine its table: that is worth about what metering costs.
//
// Two steps of the instantiation are left to the host, which can skip them when it
// puts an instance into the state of another: active data segments whose place in
// the module's own memory is known leave the module as [Result].Data, and the start
// function is called through an export that is added, [Result].Start. The segments
// that stay get new numbers; those that left count as dropped, as the specification
// says, although wazero keeps them.
//
// A guest has one thread, whether its memory is shared or not. So memory.atomic.wait
// on a shared memory is replaced by what it comes to: it answers at once that the
// value differs or that the time is over, and traps when it would wait for ever. The
// engine's own would block where nothing stops it.
//
// # Trust
//
// A rewriter can turn an invalid module into a valid one that reaches what was
// added. Every index of the original code is therefore checked against the
// original index spaces, before it is touched.
//
// # Concurrency
//
// [Rewrite] keeps no state and does not change its input.
//
// # Errors
//
// [ErrUnsupported] is a module that uses a feature which the rewriter does not
// know, such as typed function references.
// [ErrLimit] is a module that asks for too much before it runs, [ErrInvalid] one that
// no engine should accept.
package meter
