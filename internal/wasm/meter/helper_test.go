package meter_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

const pages = 5

// rangeModule exports the range instructions on a memory of 5 pages.
func rangeModule() []byte {
	three := enc(get, 0, get, 1, get, 2)
	return module(
		sec(sType, fn(enc(i32, i32, i32), nil)),
		sec(sFunc, enc(0), enc(0), enc(0)),
		sec(sMemory, enc(0, pages)),
		sec(sExport, export("memory", 2, 0), export("copy", 0, 0), export("fill", 0, 1), export("init", 0, 2)),
		enc(sCount, 1, 1),
		sec(sCode, body(three, 0xfc, 10, 0, 0), body(three, 0xfc, 11, 0), body(three, 0xfc, 8, 0, 0)),
		sec(sData, enc(1, sized(bytes.Repeat([]byte("segment "), 9000)))),
	)
}

// twins are a plain and a metered instance whose memories hold the same noise.
func twins(t *testing.T, bin []byte) (plain, metered *guest) {
	t.Helper()
	plain, metered = start(t, bin, false), start(t, bin, true)
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // noise
	a, b := memory(t, plain), memory(t, metered)
	for i := range a {
		a[i] = byte(r.Uint32())
	}
	copy(b, a)
	return plain, metered
}

func memory(t *testing.T, g *guest) []byte {
	t.Helper()
	m, ok := g.Memory().Read(0, g.Memory().Size())
	if !ok {
		t.Fatal("no memory")
	}
	return m
}

// ranges returns arguments around what can go wrong.
func ranges(r *rand.Rand) (dst, src, n uint32) {
	const size = pages << 16
	near := func(v uint32) uint32 { return v + r.Uint32N(5) - 2 }
	lengths := []uint32{0, 1, 63, 64, 1 << 16, 1<<16 + 1, 2 << 16, 3<<16 - 1, size - 1, size, 1 << 31, math.MaxUint32}
	n = near(lengths[r.IntN(len(lengths))])
	if r.IntN(3) == 0 {
		n = r.Uint32N(size)
	}
	dst = r.Uint32N(size)
	if n <= size && r.IntN(4) > 0 {
		dst = r.Uint32N(size - n + 1)
	}
	distances := []uint32{0, 1, 64, 1<<16 - 1, 1 << 16, 1<<16 + 1, 2 << 16}
	distance := near(distances[r.IntN(len(distances))])
	if src = dst + distance; r.IntN(2) == 0 {
		src = dst - distance
	}
	if r.IntN(8) == 0 {
		src = r.Uint32()
	}
	return dst, src, n
}

// TestRewrite_ranges is a property: a metered range instruction leaves the same
// memory behind and traps for the same arguments, and then it has written nothing.
func TestRewrite_ranges(t *testing.T) {
	t.Parallel()
	for seed, export := range []string{"copy", "fill", "init"} {
		t.Run(export, func(t *testing.T) {
			t.Parallel()
			plain, metered := twins(t, rangeModule())
			r := rand.New(rand.NewPCG(uint64(seed), 7)) //nolint:gosec // arguments
			trapped, overlapped, long := 0, 0, 0
			for range 1500 {
				dst, src, n := ranges(r)
				if export == "init" && r.IntN(8) > 0 { // the segment has 72,000 bytes
					src, n = r.Uint32N(1000), r.Uint32N(72_000)
				}
				_, want := plain.ExportedFunction(export).Call(t.Context(), uint64(dst), uint64(src), uint64(n))
				_, got := metered.ExportedFunction(export).Call(t.Context(), uint64(dst), uint64(src), uint64(n))
				if firstLine(want) != firstLine(got) {
					t.Fatalf("%s(%d, %d, %d): plain %v, metered %v", export, dst, src, n, want, got)
				}
				if !bytes.Equal(memory(t, plain), memory(t, metered)) {
					t.Fatalf("%s(%d, %d, %d) left another memory behind (trap: %v)", export, dst, src, n, got)
				}
				switch {
				case got != nil:
					trapped++
				case n > 1<<16:
					long++
					if gap := max(dst, src) - min(dst, src); gap > 0 && gap < n {
						overlapped++
					}
				}
			}
			t.Logf("%d trapped, %d took more than a chunk, %d of those overlapped", trapped, long, overlapped)
			if trapped < 100 || trapped > 1400 || export != "init" && long < 100 || export == "copy" && overlapped < 50 {
				t.Error("the arguments miss what they are for")
			}
		})
	}
}

// TestRewrite_fillTrapsBeforeItWrites fills beyond the end with a length of
// several chunks: the chunks that are in bounds must not be written.
func TestRewrite_fillTrapsBeforeItWrites(t *testing.T) {
	t.Parallel()
	_, g := twins(t, rangeModule())
	before := bytes.Clone(memory(t, g))
	for _, c := range [][3]uint64{
		{0, 1, pages<<16 + 1},
		{1, 1, pages << 16},
		{pages << 16, 1, 1},
		{100, 1, math.MaxUint32},
		{math.MaxUint32, 1, 2}, // wraps around in 32 bits
	} {
		if _, err := g.ExportedFunction("fill").Call(t.Context(), c[0], c[1], c[2]); err == nil {
			t.Errorf("fill%v did not trap", c)
		}
		if !bytes.Equal(memory(t, g), before) {
			t.Errorf("fill%v wrote before it trapped", c)
		}
	}
}

// tableModule exports table.grow, table.size, table.fill and table.copy on a table
// of 3 to max elements.
func tableModule(most int) []byte {
	return module(
		sec(sType, fn(enc(i32), enc(i32)), fn(nil, enc(i32)), fn(enc(i32, i32, i32), nil)),
		sec(sFunc, enc(0), enc(1), enc(2), enc(2)),
		sec(sTable, enc(funcref, 1, 3, leb(most))),
		sec(sExport, export("grow", 0, 0), export("size", 0, 1), export("fill", 0, 2), export("copy", 0, 3)),
		sec(sCode,
			body(0xd0, funcref, get, 0, 0xfc, 15, 0),
			body(0xfc, 16, 0),
			body(get, 0, 0xd0, funcref, get, 2, 0xfc, 17, 0),
			body(get, 0, get, 1, get, 2, 0xfc, 14, 0, 0)),
	)
}

func TestRewrite_tables(t *testing.T) {
	t.Parallel()
	for _, most := range []int{10, 1 << 28} {
		plain, metered := start(t, tableModule(most), false), start(t, tableModule(most), true)
		for _, c := range []struct {
			export string
			args   []uint64
		}{
			{"size", nil},
			{"grow", []uint64{0}},
			{"grow", []uint64{7}},
			{"grow", []uint64{math.MaxUint32}},
			{"size", nil},
			{"fill", []uint64{0, 0, 10}},
			{"fill", []uint64{1, 0, math.MaxUint32}},
			{"fill", []uint64{11, 0, 0}},
			{"copy", []uint64{0, 3, 7}},
			{"copy", []uint64{4, 0, 7}},
			{"copy", []uint64{math.MaxUint32, 0, 1}},
		} {
			want, errWant := plain.ExportedFunction(c.export).Call(t.Context(), c.args...)
			got, errGot := metered.ExportedFunction(c.export).Call(t.Context(), c.args...)
			if firstLine(errWant) != firstLine(errGot) || len(want) != len(got) || len(want) > 0 && want[0] != got[0] {
				t.Errorf("max %d: %s%v: plain %v %v, metered %v %v", most, c.export, c.args, want, errWant, got, errGot)
			}
		}
	}
}

// TestRewrite_maxTable bounds what a module may grow to, and start with.
func TestRewrite_maxTable(t *testing.T) {
	t.Parallel()
	g := start(t, tableModule(1<<28), true)
	const minusOne = math.MaxUint32
	for _, c := range []struct{ by, want uint64 }{
		{meter.DefaultMaxTable, minusOne}, {meter.DefaultMaxTable - 3, 3}, {1, minusOne}, {0, meter.DefaultMaxTable},
	} {
		if got := g.run(t, "grow", c.by)[0]; got != c.want {
			t.Errorf("grow by %d answers %d, want %d", c.by, int32(got), int32(c.want)) //nolint:gosec // an i32
		}
	}
	opts := options()
	opts.MaxTable = 2
	if _, err := rewrite(tableModule(10), opts); err == nil {
		t.Error("a table of 3 elements passed a bound of 2")
	}
}

// TestRewrite_maxTables: many tables have no more elements than one.
func TestRewrite_maxTables(t *testing.T) {
	t.Parallel()
	tables := func(n, least int) []byte {
		all := make([][]byte, n)
		for i := range all {
			all[i] = enc(funcref, 0, least)
		}
		return module(
			sec(sType, fn(enc(i32), enc(i32))),
			sec(sFunc, enc(0), enc(0)),
			sec(sTable, all...),
			sec(sExport, export("grow", 0, 0), export("grow last", 0, 1)),
			sec(sCode, body(0xd0, funcref, get, 0, 0xfc, 15, 0), body(0xd0, funcref, get, 0, 0xfc, 15, n-1)),
		)
	}
	const minusOne = math.MaxUint32
	for _, n := range []int{2, 100} {
		g := start(t, tables(n, 1), true)
		for _, c := range []struct {
			export   string
			by, want uint64
		}{
			{"grow", 1000, 1},
			{"grow last", meter.DefaultMaxTable, minusOne},
			{"grow last", meter.DefaultMaxTable - 1000 - uint64(n), 1},
			{"grow", 1, minusOne},
			{"grow last", 1, minusOne},
			{"grow", 0, 1001},
		} {
			if got := g.run(t, c.export, c.by)[0]; got != c.want {
				t.Errorf("%d tables: %s by %d answers %d, want %d", n, c.export, c.by, int32(got), int32(c.want)) //nolint:gosec // an i32
			}
		}
	}
	for _, bad := range []struct{ n, least, most int }{{3, 4, 11}} {
		bin := tables(bad.n, bad.least)
		opts := options()
		opts.MaxTable = uint32(bad.most)
		if _, err := rewrite(bin, opts); err == nil {
			t.Errorf("%d tables of %d elements passed a bound of %d", bad.n, bad.least, bad.most)
		}
	}
}
