package meter_test

import (
	"bytes"
	"fmt"
	"testing"
)

// cost is a body and what running it with n costs.
type cost struct {
	name string
	body []byte
	n    uint64
	want int64
}

// costs are bodies of a function (i32) -> (), argument n, and what a call costs.
// The module has a second function, number 2, which costs 3, an import, number 0,
// a memory of 1 to 40 pages and a table of 10 to 100 elements.
func costs() []cost {
	return []cost{
		{"empty", enc(), 0, 1},
		{"three instructions", enc(0x01, 0x01), 0, 3},
		{"both arms of an if", enc(get, 0, 0x04, 0x40, 0x01, 0x01, 0x05, 0x01, end), 0, 8},
		{"both arms of an if, other arm", enc(get, 0, 0x04, 0x40, 0x01, 0x01, 0x05, 0x01, end), 1, 8},
		// An arm of 24 instructions and more is paid for when it is entered, a shorter one always.
		{"a short arm that is skipped", enc(get, 0, 0x04, 0x40, nops(22), end), 0, 3 + 23},
		{"a long arm that is skipped", enc(get, 0, 0x04, 0x40, nops(23), end), 0, 3},
		{"a long arm", enc(get, 0, 0x04, 0x40, nops(23), end), 1, 3 + 24},
		{"a long else that is skipped", enc(get, 0, 0x04, 0x40, nops(5), 0x05, nops(23), end), 1, 9},
		{"a long else", enc(get, 0, 0x04, 0x40, nops(5), 0x05, nops(23), end), 0, 9 + 24},
		{"two long arms", enc(get, 0, 0x04, 0x40, nops(30), 0x05, nops(50), end), 1, 3 + 31},
		{"behind a br_if that leaves", enc(0x02, 0x40, get, 0, 0x0d, 0, nops(30), end), 1, 4},
		{"behind a br_if that does not", enc(0x02, 0x40, get, 0, 0x0d, 0, nops(30), end), 0, 4 + 31},
		{"behind a block that is left past it", enc(0x02, 0x40, 0x02, 0x40, get, 0, 0x0d, 1, end, nops(30), end), 1, 6},
		{"behind a block that is not", enc(0x02, 0x40, 0x02, 0x40, get, 0, 0x0d, 1, end, nops(30), end), 0, 6 + 31},
		{"short arms within a long one", enc(get, 0, 0x04, 0x40, nops(10), get, 0, 0x04, 0x40, nops(10), end, nops(10), end), 0, 3},
		{"a long arm within a loop", enc(loop, 0x40, get, 0, konst, 1, 0x6b, 0x22, 0, 0x04, 0x40, nops(30), end, get, 0, 0x0d, 0, end), 2, 2 + 2*8 + 31},
		{"a block is no loop", enc(0x02, 0x40, 0x0c, 0, end), 0, 4},
		{"code behind a return", enc(0x0f, 0x01, 0x01), 0, 4},
		{"call", enc(0x10, 2), 0, 2 + 3},
		{"tail call", enc(0x12, 2), 0, 2 + 3},
		{"import", enc(0x10, 0, drop), 0, 3},
		{"loop once", countdown(), 1, 2 + 6},
		{"loop a thousand times", countdown(), 1000, 2 + 6*1000},
		{"loop that is left by br", enc(0x02, 0x40, loop, 0x40, 0x0c, 1, end, end), 0, 4 + 2},
		{"loop that is never entered", enc(get, 0, 0x04, 0x40, loop, 0x40, 0x01, end, end), 0, 5},
		{"inner loop", enc(loop, 0x40, loop, 0x40, end, get, 0, konst, 1, 0x6b, 0x22, 0, 0x0d, 0, end), 10, 2 + 10*(7+1)},
		// A jump costs local.get and br_table, and 2 for the entry of the function, which
		// leads straight to it; the pieces cost what follows up to the next end: 2, 5, 1.
		{"dispatch to the first piece", dispatch(2), 0, 2 + 2 + 2},
		{"dispatch to the second piece", dispatch(2), 1, 2 + 2 + 5},
		{"dispatch to the last piece", dispatch(2), 2, 2 + 2 + 1},
		{"dispatch beyond", dispatch(2), 9, 2 + 2 + 1},
		{"jump ahead", again(2, 2), 1, 2*(2+2) + 4 + 1},
		{"jump back", again(0, 2), 1, 2*(2+2) + 4 + 2},
		// Here the header is paid for whenever it is passed: a jump ahead goes past it.
		{"jump ahead, open", again(2, 3), 1, 2 + 6 + 4 + 1},
		{"jump back, open", again(0, 3), 1, 2 + 6 + 4 + 6 + 2},
		// Where the entry can lead elsewhere, or is long, it pays for itself.
		{"dispatch behind a branch", enc(0x02, 0x40, get, 0, 0x0d, 0, end, dispatch(2)), 0, 6 + 2 + 2},
		{"dispatch behind a call", enc(0x10, 2, dispatch(2)), 0, 3 + 3 + 2 + 2},
		{"dispatch behind a long entry", enc(nops(16), dispatch(2)), 1, 18 + 2 + 5},
		{"dispatch behind a short entry", enc(nops(14), dispatch(2)), 1, 16 + 2 + 5},
		{"the second dispatch", enc(dispatch(2), dispatch(2)), 2, 3 + 2*(2+1)},
		// A br_table that leads to the header or past the loop: all of it is paid for,
		// 3 blocks, local.get, br_table and the first end.
		{"dispatch past the loop", dispatch(4), 9, 2 + 6},
		{"dispatch to itself", dispatch(3), 0, 2 + 6 + 2},
		// i32.const 0, i32.const 7, local.get 0, memory.fill, end
		{"fill nothing", fill(), 0, 5 + 1},
		{"fill 63", fill(), 63, 5 + 1},
		{"fill 64", fill(), 64, 5 + 2},
		{"fill a chunk", fill(), 1 << 16, 5 + 1025},
		{"fill a chunk and one", enc(konst, 1, 0x40, 0, drop, fill()), 1<<16 + 1, 3 + 256 + 5 + 4096 + 1},
		{"fill 40 pages", enc(konst, 39, 0x40, 0, drop, fill()), 40 << 16, 3 + 39*256 + 5 + 39*4096 + 1024 + 1},
		{"copy down", enc(konst, 0, konst, 9, get, 0, 0xfc, 10, 0, 0), 640, 5 + 11},
		{"copy up", enc(konst, 9, konst, 0, get, 0, 0xfc, 10, 0, 0), 640, 5 + 11},
		{"init", enc(konst, 0, konst, 0, get, 0, 0xfc, 8, 0, 0), 3, 5 + 1},
		{"grow", enc(get, 0, 0x40, 0, drop), 4, 4 + 4*256},
		{"grow by nothing", enc(get, 0, 0x40, 0, drop), 0, 4},
		{"grow beyond the maximum", enc(get, 0, 0x40, 0, drop), 1000, 4 + 1000*256},
		{"grow by more than there can be", enc(get, 0, 0x40, 0, drop), 1 << 31, 4},
		{"table.fill", enc(konst, 0, 0xd0, funcref, get, 0, 0xfc, 17, 0), 10, 5 + 11},
		{"table.copy", enc(konst, 0, konst, 0, get, 0, 0xfc, 14, 0, 0), 10, 5 + 11},
		{"table.init", enc(konst, 0, konst, 0, get, 0, 0xfc, 12, 0, 0), 2, 5 + 3},
		{"table.grow", enc(0xd0, funcref, get, 0, 0xfc, 15, 0, drop), 50, 5 + 51},
	}
}

// countdown is a loop with n rounds of 6 instructions.
func countdown() []byte {
	return enc(loop, 0x40, get, 0, konst, 1, 0x6b, 0x22, 0, 0x0d, 0, end)
}

func nops(n int) []byte { return bytes.Repeat([]byte{0x01}, n) }

// dispatch jumps to one of three pieces: return; three nops, return; the end of
// the loop. beyond is where other numbers lead to: 2 is the last piece, 3 the header,
// 4 the block around it, which is the function.
func dispatch(beyond int) []byte {
	return enc(loop, 0x40, 0x02, 0x40, 0x02, 0x40, 0x02, 0x40, get, 0, 0x0e, 3, 0, 1, 2, beyond, end,
		0x0f, end, 0x01, 0x01, 0x01, 0x0f, end, end)
}

// again has three pieces: return; jump to another one; the end of the loop.
func again(to, beyond int) []byte {
	return enc(loop, 0x40, 0x02, 0x40, 0x02, 0x40, 0x02, 0x40, get, 0, 0x0e, 3, 0, 1, 2, beyond, end,
		0x0f, end, konst, to, 0x21, 0, 0x0c, 1, end, end)
}

func fill() []byte { return enc(konst, 0, konst, 7, get, 0, 0xfc, 11, 0) }

// costModule has one of costs as its function 1.
func costModule(ops []byte) []byte {
	return module(
		sec(sType, fn(enc(i32), nil), fn(nil, enc(i32)), fn(nil, nil)),
		sec(sImport, enc(sized("env"), sized("one"), 0, 1)),
		sec(sFunc, enc(0), enc(2)),
		sec(sTable, enc(funcref, 1, 10, 100)),
		sec(sMemory, enc(1, 1, 40)),
		sec(sExport, export("f", 0, 1)),
		sec(sElem, enc(1, 0, vec(enc(1), enc(2)))),
		enc(sCount, 1, 1),
		sec(sCode, body(ops), body(0x01, 0x01)),
		sec(sData, enc(1, sized("abc"))),
	)
}

func TestRewrite_cost(t *testing.T) {
	t.Parallel()
	for _, c := range costs() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := start(t, costModule(c.body), true)
			g.run(t, "f", c.n)
			if got := g.fuel(); got != c.want {
				t.Errorf("f(%d) cost %d, want %d", c.n, got, c.want)
			}
		})
	}
}

// TestRewrite_refill counts how often the host is asked: when the counter is
// below zero, not when it is zero.
func TestRewrite_refill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ have, refills int }{{602, 0}, {601, 1}, {8, 1}, {1, 1}, {0, 1}} {
		t.Run(fmt.Sprint(c.have), func(t *testing.T) {
			t.Parallel()
			g := start(t, costModule(countdown()), true)
			g.counter.Set(uint64(c.have))
			g.run(t, "f", 100)
			if g.refills != c.refills {
				t.Errorf("%d refills with %d of 602 units, want %d", g.refills, c.have, c.refills)
			}
		})
	}
}
