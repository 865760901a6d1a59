package meter_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// Locals of a function that jumps: the number of the piece, the rounds that are left
// (without an end when negative), what came by, and one that means nothing.
const (
	number, rounds, trace, decoy = 0, 1, 2, 3
)

// dispatcher writes functions with dispatch loops in the manner of Go's compiler, and
// what comes close to it.
type dispatcher struct {
	*rand.Rand

	steps int
	// spins allows tables that lead back to the header: nothing but a meter ends that.
	spins bool
}

// one is one of its arguments.
func (d *dispatcher) one(ops ...[]byte) []byte { return ops[d.IntN(len(ops))] }

// loop is a dispatch loop with pieces. Around it there are as many levels of control as
// outer says, with the header of another one at the depth of headers[0], if any.
func (d *dispatcher) loop(outer int, headers []int) []byte {
	n := 2 + d.IntN(4)
	level := outer + 2 // the block around the loop, and the loop
	out := enc(0x02, 0x40, loop, 0x40)
	for range n {
		out = append(out, 0x02)
		out = append(out, d.one(enc(0x40), enc(0x40), enc(0x40), enc(1))...) // type 1 is one of nothing
	}
	effect := d.one(nil, nil, nil, enc(konst, 7, 0x21, trace))
	local := enc(get, d.pick(number, number, number, decoy))
	index := d.one(local, local, local, local, enc(local, konst, 1, 0x6a), enc(konst, d.IntN(n)))
	out = append(out, enc(effect, index, d.table(n), end)...)
	headers = append(slices.Clone(headers), level)
	for piece := range n {
		out = append(out, d.piece(level+n-1-piece, headers)...)
		out = append(out, end)
	}
	return append(out, end)
}

func (d *dispatcher) pick(locals ...int) int { return locals[d.IntN(len(locals))] }

// table is a br_table whose labels are mostly those of the n pieces.
func (d *dispatcher) table(n int) []byte {
	labels := make([]byte, 1+d.IntN(8))
	for i := range labels {
		labels[i] = byte(d.IntN(n))
		switch d.IntN(12) {
		case 0:
			labels[i] = byte(n + 1) // the block around the loop
		case 1:
			if d.spins {
				labels[i] = byte(n) // the header
			}
		}
	}
	return enc(0x0e, len(labels)-1, labels)
}

// piece notes that it came by, ends when there are no rounds left, and does something.
func (d *dispatcher) piece(level int, headers []int) []byte {
	d.steps++
	out := enc(get, trace, konst, 31, 0x6c, konst, d.steps&0x3f, 0x6a, 0x21, trace,
		get, rounds, 0x45, 0x04, 0x40, get, trace, 0x0f, end,
		get, rounds, konst, 1, 0x6b, 0x21, rounds)
	for range d.IntN(3) {
		out = append(out, d.step(level, headers)...)
	}
	return out
}

// step may jump, from a level of its own, or is another dispatch loop.
func (d *dispatcher) step(level int, headers []int) []byte {
	header := headers[d.IntN(len(headers))]
	jump := func(level int) []byte {
		set := enc(konst, d.pick(0, 1, 2, 3, 4, 9, 0x7f), d.pick(0x21, 0x21, 0x21, get), d.pick(number, number, number, decoy))
		return enc(set, d.one(nil, nil, nil, enc(0x01), enc(get, number, 0x21, number)), 0x0c, level-header)
	}
	sometimes := enc(get, trace, konst, d.IntN(8), 0x76, konst, 1, 0x71) // a bit of the trace
	switch d.IntN(9) {
	case 0:
		return jump(level)
	case 1:
		return enc(0x02, 0x40, sometimes, 0x0d, 0, jump(level+1), end)
	case 2:
		return enc(sometimes, 0x04, 0x40, loop, 0x40, jump(level+2), end, end)
	case 3:
		if level < 12 {
			return d.loop(level, headers)
		}
		return nil
	case 4:
		return enc(sometimes, 0x04, 0x40, jump(level+1), 0x05, jump(level+1), end)
	case 5:
		return enc(0x1f, 0x40, 0, sometimes, 0x04, 0x40, jump(level+2), end, end) // try_table
	default:
		return enc(sometimes, 0x04, 0x40, jump(level+1), end)
	}
}

// jumper is a module with such a function.
func jumper(seed uint64, spins bool) []byte {
	d := &dispatcher{Rand: rand.New(rand.NewPCG(seed, 7)), spins: spins} //nolint:gosec // a test's choices
	return module(
		sec(sType, fn(enc(i32, i32), enc(i32)), fn(nil, nil)),
		sec(sFunc, enc(0)),
		sec(sExport, export("f", 0, 0)),
		sec(sCode, sized(1, 2, i32, d.loop(0, nil), get, trace, end)),
	)
}

// TestRewrite_jumps is a property: jumps that lead past the header of a dispatch loop
// come by the same pieces, and the count is the same each time.
func TestRewrite_jumps(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		bin := jumper(seed, false)
		plain, metered := start(t, bin, false), start(t, bin, true)
		for first := range uint64(6) {
			for _, rounds := range []uint64{3, 1000} {
				want, got := plain.run(t, "f", first, rounds), metered.run(t, "f", first, rounds)
				used := metered.fuel()
				again := metered.run(t, "f", first, rounds)
				if !slices.Equal(want, got) || !slices.Equal(want, again) || metered.fuel() != used {
					t.Fatalf("seed %d: f(%d, %d): plain %v, metered %v and %v", seed, first, rounds, want, got, again)
				}
			}
		}
	}
}

// TestRewrite_jumpTakesAlong has a jump ahead that gives the loop an operand, which
// must arrive.
func TestRewrite_jumpTakesAlong(t *testing.T) {
	t.Parallel()
	bin := module(
		sec(sType, fn(enc(i32), enc(i32)), fn(enc(i32), nil)),
		sec(sFunc, enc(0)),
		sec(sExport, export("f", 0, 0)),
		sec(sCode, sized(1, 1, i32, konst, 3, loop, 1, 0x02, 0x40, 0x02, 0x40, get, 0, 0x0e, 1, 0, 1, end,
			konst, 5, konst, 1, 0x21, 0, 0x0c, 1, end, 0x21, 1, end, get, 1, end)),
	)
	for first, want := range []uint64{5, 3} {
		for _, metered := range []bool{false, true} {
			if got := start(t, bin, metered).run(t, "f", uint64(first)); got[0] != want {
				t.Errorf("f(%d), metered %t: %d, want %d", first, metered, got[0], want)
			}
		}
	}
}

// TestRewrite_jumpsStop runs the same functions without an end: each returns or is
// stopped when the counter is used up.
func TestRewrite_jumpsStop(t *testing.T) {
	t.Parallel()
	stopped := 0
	for seed := range uint64(300) {
		g := start(t, jumper(seed, true), true)
		g.stop = errors.New("stopped")
		for first := range uint64(6) {
			g.counter.Set(10_000)
			if _, err := g.ExportedFunction("f").Call(t.Context(), first, 1<<32-1); err != nil {
				if !errors.Is(err, g.stop) {
					t.Fatal(err)
				}
				stopped++
			}
		}
	}
	if stopped < 100 {
		t.Errorf("only %d calls had to be stopped", stopped)
	}
}
