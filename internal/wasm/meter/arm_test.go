package meter_test

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// armer writes random structured code that adds up in global 0 how many instructions it executes.
type armer struct {
	*rand.Rand

	left int
}

// bit reads a bit of the argument.
func (a *armer) bit() []byte {
	return enc(get, 0, konst, a.IntN(32), 0x76, konst, 1, 0x71) // i32.shr_u, i32.and
}

const bitCost, runCost = 5, 4

// run is a few instructions, or many, which note themselves and others that were executed before.
func (a *armer) run(also int) []byte {
	n := a.IntN(8)
	if a.IntN(3) == 0 {
		n = a.IntN(120)
	}
	a.left -= n + runCost
	count := n + runCost + also
	return enc(nops(n), 0x23, 0, konst, leb7(count), 0x6a, 0x24, 0)
}

// leb7 encodes a small number as a signed one.
func leb7(v int) []byte {
	if v < 64 {
		return []byte{byte(v)}
	}
	return []byte{byte(v)&0x7f | 0x80, byte(v >> 7)}
}

// code is a sequence inside of depth levels of control, of which those listed may be left by a branch.
func (a *armer) code(depth int, leave []int) []byte {
	out := a.run(0)
	for a.left > 0 && a.IntN(5) > 0 {
		switch kind := a.IntN(6); {
		case kind == 0 && depth < 7:
			out = append(out, enc(0x02, 0x40, a.code(depth+1, append(slices.Clip(leave), depth)), end)...)
		case kind == 1 && depth < 7:
			out = append(out, enc(a.bit(), 0x04, 0x40, a.code(depth+1, append(slices.Clip(leave), depth)))...)
			if a.IntN(2) == 0 {
				out = append(out, enc(0x05, a.code(depth+1, append(slices.Clip(leave), depth)))...)
			}
			out = append(out, end)
		case kind == 2 && depth < 7: // a loop of three rounds, whose number is a local of its depth
			local := 1 + depth
			out = append(out, enc(konst, 3, 0x21, local, loop, 0x40, a.code(depth+1, leave),
				get, local, konst, 1, 0x6b, 0x22, local, 0x0d, 0, end)...)
		case kind == 3 && len(leave) > 0:
			out = append(out, enc(a.bit(), 0x0d, depth-1-leave[a.IntN(len(leave))])...)
		case kind == 4 && len(leave) > 1:
			first, second := leave[a.IntN(len(leave))], leave[a.IntN(len(leave))]
			out = append(out, enc(a.bit(), 0x04, 0x40, a.bit(), 0x0e, 1, depth-first, depth-second, end)...)
		default:
			out = append(out, enc(a.bit(), drop, a.run(bitCost+1))...)
		}
	}
	return append(out, a.run(0)...)
}

// TestRewrite_arms is a property: a call is never charged less than the instructions that it executes, whatever way it takes, and
// with branches around much code not all of that is charged.
func TestRewrite_arms(t *testing.T) {
	t.Parallel()
	executed, charged := int64(0), int64(0)
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 11)) //nolint:gosec // code
		a := &armer{Rand: rng, left: 2500}
		ops := a.code(0, nil)
		bin := module(sec(sType, fn(enc(i32), nil)), sec(sFunc, enc(0)), sec(sGlobal, enc(i32, 1, konst, 0, end)),
			sec(sExport, export("f", 0, 0), export("ticks", 3, 0)), sec(sCode, sized(1, 8, i32, ops, end)))
		g := start(t, bin, true)
		ticks := func() int64 { return int64(uint32(g.ExportedGlobal("ticks").Get())) }
		for range 20 {
			before := ticks()
			g.run(t, "f", uint64(rng.Uint32()))
			did, cost := ticks()-before, g.fuel()
			if cost < did {
				t.Fatalf("seed %d: %d instructions were executed, and %d are charged", seed, did, cost)
			}
			executed, charged = executed+did, charged+cost
		}
	}
	t.Logf("%d executed, %d charged", executed, charged)
	if charged > 2*executed {
		t.Errorf("%d instructions were executed, and %d are charged", executed, charged)
	}
}
