package meter_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"github.com/mortise-dev/mortise/internal/wasm"
	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

// writer is an instruction that writes: what comes before its address and behind it, and how many bytes it
// writes. All are exported as functions of an address.
type writer struct {
	name   string
	value  []byte
	op     []byte
	size   int
	atomic bool
}

func writers() []writer {
	v128 := enc(0xfd, 12, bytes.Repeat([]byte{0x5a}, 16))
	one, two := enc(konst, 1), enc(0x42, 1)
	return []writer{
		{name: "i32.store", value: one, op: enc(0x36), size: 4},
		{name: "i64.store", value: two, op: enc(0x37), size: 8},
		{name: "f32.store", value: enc(0x43, 1, 2, 3, 4), op: enc(0x38), size: 4},
		{name: "f64.store", value: enc(0x44, 1, 2, 3, 4, 5, 6, 7, 8), op: enc(0x39), size: 8},
		{name: "i32.store8", value: one, op: enc(0x3a), size: 1},
		{name: "i32.store16", value: one, op: enc(0x3b), size: 2},
		{name: "i64.store8", value: two, op: enc(0x3c), size: 1},
		{name: "i64.store16", value: two, op: enc(0x3d), size: 2},
		{name: "i64.store32", value: two, op: enc(0x3e), size: 4},
		{name: "v128.store", value: v128, op: enc(0xfd, 11), size: 16},
		{name: "v128.store8_lane", value: v128, op: enc(0xfd, 88), size: 1},
		{name: "v128.store16_lane", value: v128, op: enc(0xfd, 89), size: 2},
		{name: "v128.store32_lane", value: v128, op: enc(0xfd, 90), size: 4},
		{name: "v128.store64_lane", value: v128, op: enc(0xfd, 91), size: 8},
		{name: "i32.atomic.store", value: one, op: enc(0xfe, 0x17), size: 4, atomic: true},
		{name: "i64.atomic.store32", value: two, op: enc(0xfe, 0x1d), size: 4, atomic: true},
		{name: "i32.atomic.rmw.add", value: one, op: enc(0xfe, 0x1e), size: 4, atomic: true},
		{name: "i64.atomic.rmw32.cmpxchg_u", value: enc(two, two), op: enc(0xfe, 0x4e), size: 4, atomic: true},
	}
}

// align is the exponent that an instruction's memarg must have or may have.
func (w *writer) align() int {
	if !w.atomic {
		return 0
	}
	return int(math.Log2(float64(w.size)))
}

// writersModule exports every writer with an offset of its memarg, as functions of an address.
func writersModule(offset int) []byte {
	var bodies, exports, funcs [][]byte
	for n, w := range writers() {
		ops := enc(get, 0, w.value, w.op, w.align(), leb(offset))
		if len(w.op) == 2 && w.op[0] == 0xfd && w.op[1] >= 88 {
			ops = enc(ops, 0) // the lane
		}
		if w.atomic && w.op[1] >= 0x1e {
			ops = enc(ops, drop)
		}
		funcs, bodies, exports = append(funcs, enc(0)), append(bodies, body(ops)), append(exports, export(w.name, 0, n))
	}
	exports = append(exports, export("memory", 2, 0))
	return module(sec(sType, fn(enc(i32), nil)), sec(sFunc, funcs...), sec(sMemory, enc(0, pages)), sec(sExport, exports...), sec(sCode, bodies...))
}

// followed is an instance whose writes are followed.
type followed struct {
	*guest

	globals []api.MutableGlobal
}

func follow(t *testing.T, bin []byte) *followed {
	t.Helper()
	opts := options()
	opts.Follow = true
	r, err := rewrite(bin, opts)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Windows) != 4 {
		t.Fatalf("windows %v", r.Windows)
	}
	f := &followed{guest: startRewritten(t, r)}
	for n, name := range r.Windows {
		g, ok := f.ExportedGlobal(name).(api.MutableGlobal)
		if !ok || g.Get() != 0 {
			t.Fatalf("window global %d: %v, found %t", n, g, ok)
		}
		f.globals = append(f.globals, g)
	}
	return f
}

// window is a range of addresses.
type window struct{ from, length uint32 }

func (w window) end() uint64 { return uint64(w.from) + uint64(w.length) }

// open sets the windows, and unseen tells whether something was written outside of them since.
func (f *followed) open(windows [2]window) {
	for n, w := range windows {
		f.globals[2*n].Set(uint64(w.from))
		f.globals[2*n+1].Set(uint64(w.length))
	}
}

func (f *followed) unseen() bool { return f.globals[1].Get() == math.MaxUint32 }

// TestRewrite_follow is a property: a write is unseen if and only if it does not begin in a window, whatever
// instruction it is, and it does what it did.
func TestRewrite_follow(t *testing.T) {
	t.Parallel()
	for _, offset := range []int{0, 1, 5000, math.MaxInt32, math.MaxUint32} {
		t.Run(fmt.Sprintf("offset %d", offset), func(t *testing.T) {
			t.Parallel()
			bin := writersModule(offset)
			plain, f := start(t, bin, false), follow(t, bin)
			rng := rand.New(rand.NewPCG(1, uint64(offset))) //nolint:gosec // addresses
			missed, hit, trapped := 0, 0, 0
			for range 400 {
				windows := [2]window{{rng.Uint32N(1000), rng.Uint32N(5000)}, {100_000 + rng.Uint32N(1000), rng.Uint32N(70_000)}}
				for _, w := range writers() {
					f.open(windows)
					at := nearby(rng, windows) &^ (uint32(1)<<w.align() - 1)
					address := at - uint32(offset)
					_, want := plain.ExportedFunction(w.name).Call(t.Context(), uint64(address))
					_, got := f.ExportedFunction(w.name).Call(t.Context(), uint64(address))
					if firstLine(want) != firstLine(got) {
						t.Fatalf("%s at %d: plain %v, followed %v", w.name, at, want, got)
					}
					if got != nil {
						trapped++
						continue
					}
					inside := false
					for _, win := range windows {
						inside = inside || at >= win.from && uint64(at) < win.end()
					}
					if f.unseen() == (inside && !w.atomic) {
						t.Fatalf("%s at %d: unseen %t, windows %v", w.name, at, f.unseen(), windows)
					}
					if inside {
						hit++
					} else {
						missed++
					}
				}
				if !bytes.Equal(memory(t, plain), memory(t, f.guest)) {
					t.Fatal("another memory is left behind")
				}
			}
			t.Logf("%d inside, %d outside, %d trapped", hit, missed, trapped)
			if small := offset < 10_000; small && (hit < 1000 || missed < 1000) || !small && trapped == 0 {
				t.Error("the addresses miss what they are for")
			}
		})
	}
}

// nearby is an address, mostly one around the edges of windows or memory.
func nearby(rng *rand.Rand, windows [2]window) uint32 {
	const size = pages << 16
	edges := []uint64{uint64(windows[0].from), windows[0].end(), uint64(windows[1].from), windows[1].end(), size, 0, math.MaxUint32}
	switch rng.IntN(4) {
	case 0:
		return rng.Uint32N(size)
	case 1:
		w := windows[rng.IntN(2)]
		return w.from + rng.Uint32N(w.length+1)
	}
	return uint32(edges[rng.IntN(len(edges))]) + rng.Uint32N(40) - 20
}

// TestRewrite_followRanges is the same property for instructions that write a range: it must end in the window, too.
func TestRewrite_followRanges(t *testing.T) {
	t.Parallel()
	for _, export := range []string{"copy", "fill", "init"} {
		t.Run(export, func(t *testing.T) {
			t.Parallel()
			plain, f := start(t, rangeModule(), false), follow(t, rangeModule())
			rng := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // arguments
			missed, hit := 0, 0
			for range 4000 {
				windows := [2]window{{rng.Uint32N(1000), rng.Uint32N(5000)}, {100_000 + rng.Uint32N(1000), rng.Uint32N(140_000)}}
				f.open(windows)
				dst, src, n := nearby(rng, windows), rng.Uint32N(1000), rng.Uint32N(71_000)
				if rng.IntN(2) == 0 {
					n = rng.Uint32N(100)
				}
				for _, w := range windows { // up to an edge
					if gap := w.end() - uint64(dst); gap < 71_000 && rng.IntN(3) == 0 {
						n = uint32(gap) + rng.Uint32N(3) - 1
					}
				}
				_, want := plain.ExportedFunction(export).Call(t.Context(), uint64(dst), uint64(src), uint64(n))
				_, got := f.ExportedFunction(export).Call(t.Context(), uint64(dst), uint64(src), uint64(n))
				if firstLine(want) != firstLine(got) || !bytes.Equal(memory(t, plain), memory(t, f.guest)) {
					t.Fatalf("%s(%d, %d, %d): plain %v, followed %v", export, dst, src, n, want, got)
				}
				if got != nil {
					continue
				}
				inside := false
				for _, w := range windows {
					inside = inside || dst >= w.from && uint64(dst) < w.end() && uint64(dst)+uint64(n) <= w.end()
				}
				if f.unseen() == inside {
					t.Fatalf("%s(%d, %d, %d): unseen %t, windows %v", export, dst, src, n, f.unseen(), windows)
				}
				if inside {
					hit++
				} else {
					missed++
				}
			}
			if hit < 300 || missed < 300 {
				t.Errorf("%d inside, %d outside: the arguments miss what they are for", hit, missed)
			}
		})
	}
}

// TestRewrite_followFuel holds that the same call costs the same fuel, followed or not.
func TestRewrite_followFuel(t *testing.T) {
	t.Parallel()
	metered, f := start(t, writersModule(0), true), follow(t, writersModule(0))
	for _, w := range writers() {
		metered.run(t, w.name, 64)
		f.run(t, w.name, 64)
		if want, got := metered.fuel(), f.fuel(); got != want || got == 0 {
			t.Errorf("%s costs %d, followed %d", w.name, want, got)
		}
	}
}

// TestRewrite_followRefused: what cannot be followed is metered as before: a memory that others write to, and code that would ask too
// much of a compiler with what is added.
func TestRewrite_followRefused(t *testing.T) {
	t.Parallel()
	store := enc(get, 0, get, 0, 0x36, 0, 0)
	heavy := func(n int) []byte {
		return module(sec(sType, fn(enc(i32), nil)), sec(sFunc, enc(0)), sec(sMemory, enc(0, 1)), sec(sCode, body(times(n, store))))
	}
	for _, c := range []struct {
		name string
		bin  []byte
		want int
	}{
		{"no memory", module(sec(sType, fn(nil, nil)), sec(sFunc, enc(0)), sec(sCode, body())), 0},
		{"imported memory", module(sec(sType, fn(nil, nil)), sec(sImport, enc(sized("env"), sized("memory"), 2, 0, 1)), sec(sFunc, enc(0)), sec(sCode, body())), 0},
		{"many stores", heavy(12_500), 4},
		{"too many stores", heavy(12_501), 0},
	} {
		opts := options()
		opts.Follow = true
		r, err := rewrite(c.bin, opts)
		if err != nil || len(r.Windows) != c.want {
			t.Errorf("%s: %d windows, want %d: %v", c.name, len(r.Windows), c.want, err)
		}
	}
}

// TestRewrite_followHidden: code cannot reach the windows, neither by number nor by name.
func TestRewrite_followHidden(t *testing.T) {
	t.Parallel()
	opts := options()
	opts.Follow = true
	for index := 1; index < 8; index++ { // there is one global of the module's own; metering adds one, and the windows are four
		bin := module(sec(sType, fn(nil, nil)), sec(sFunc, enc(0)), sec(sMemory, enc(0, 1)), sec(sGlobal, enc(i32, 1, konst, 0, end)),
			sec(sCode, body(konst, 0, 0x24, index)))
		if _, err := rewrite(bin, opts); err == nil {
			t.Errorf("global %d of 1 can be set", index)
		}
	}
	taken := module(sec(sType, fn(nil, nil)), sec(sFunc, enc(0)), sec(sMemory, enc(0, 1)), sec(sGlobal, enc(i32, 1, konst, 0, end)),
		sec(sExport, export("mortise:w1", 3, 0)), sec(sCode, body()))
	r, err := rewrite(taken, opts)
	if err != nil {
		t.Fatal(err)
	}
	m, err := wasm.Parse(r.Wasm)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]uint32{}
	for _, e := range m.Exports {
		if _, twice := seen[e.Name]; twice {
			t.Errorf("two exports are called %q", e.Name)
		}
		seen[e.Name] = e.Index
	}
	if seen["mortise:w1"] != 0 || seen[r.Windows[1]] != 3 {
		t.Errorf("exports %v, windows %v", seen, r.Windows)
	}
}

func ExampleOptions_follow() {
	// (module (memory 1) (func (export "put") (param i32) (i32.store8 (local.get 0) (i32.const 1))))
	const text = "\x00asm\x01\x00\x00\x00\x01\x05\x01\x60\x01\x7f\x00\x03\x02\x01\x00\x05\x03\x01\x00\x01" +
		"\x07\x07\x01\x03put\x00\x00\x0a\x0b\x01\x09\x00\x20\x00\x41\x01\x3a\x00\x00\x0b"
	m, err := wasm.Parse([]byte(text))
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := meter.Rewrite(m, meter.Options{RefillModule: "host", RefillName: "refill", Follow: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Windows)
	// Output: [mortise:w0 mortise:w1 mortise:w2 mortise:w3]
}
