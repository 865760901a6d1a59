package meter_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// i32Const is a constant expression.
func i32Const(v int) []byte { return enc(konst, sleb(v), end) }

// sleb encodes a signed number.
func sleb(v int) []byte {
	var out []byte
	for ; v < -64 || v > 63; v >>= 7 {
		out = append(out, byte(v)|0x80)
	}
	return append(out, byte(v)&0x7f)
}

func active(offset []byte, content string) []byte { return enc(0, offset, sized(content)) }

func passive(content string) []byte { return enc(1, sized(content)) }

// holder is a module with a page of memory, these data segments, and functions of
// type () -> (), exported as f0, f1 and so on. Those with code can name segments.
func holder(segments [][]byte, code ...[]byte) []byte {
	sections := [][]byte{sec(sType, fn(nil, nil))}
	var funcs, exports, bodies [][]byte
	for n, ops := range code {
		funcs, bodies = append(funcs, enc(0)), append(bodies, body(ops))
		exports = append(exports, export("f"+string(rune('0'+n)), 0, n))
	}
	exports = append(exports, export("memory", 2, 0))
	sections = append(sections, sec(sFunc, funcs...), sec(sMemory, enc(0, 1)), sec(sExport, exports...))
	if len(code) > 0 {
		sections = append(sections, enc(sCount, sized(leb(len(segments)))))
	}
	return module(append(sections, sec(sCode, bodies...), sec(sData, segments...))...)
}

// initMemory is memory.init of n bytes of a segment to address 0.
func initMemory(segment, n int) []byte { return enc(konst, 0, konst, 0, konst, n, 0xfc, 8, segment, 0) }

// TestRewrite_data compares the memory after an instantiation, or its error, with
// that of the module as it is.
func TestRewrite_data(t *testing.T) {
	t.Parallel()
	const last = 1<<16 - 1
	sum := enc(konst, 10, konst, 3, 0x6a, konst, 2, 0x6c, konst, 1, 0x6b, end) // (10+3)*2-1
	for name, segments := range map[string][][]byte{
		"one":                      {active(i32Const(7), "data")},
		"overlapping, in order":    {active(i32Const(7), "first"), active(i32Const(9), "second"), active(i32Const(8), "3")},
		"computed":                 {active(sum, "data")},
		"explicit memory":          {enc(2, 0, i32Const(3), sized("data"))},
		"beside a passive one":     {passive("nothing"), active(i32Const(3), "data"), passive("nothing")},
		"empty at the end":         {active(i32Const(last+1), "")},
		"up to the end":            {active(i32Const(last), "x")},
		"beyond the end":           {active(i32Const(5), "before"), active(i32Const(last), "xy"), active(i32Const(1), "after")},
		"empty beyond the end":     {active(i32Const(last+2), "")},
		"negative":                 {active(i32Const(-1), "x")},
		"computed beyond the end":  {active(enc(konst, 0x7f, konst, 2, 0x6b, end), "x")},
		"two gigabytes and beyond": {active(i32Const(-1<<31), "x")},
		"a byte of four gigabytes": {active(enc(konst, "\xff\xff\xff\xff\x7f", end), "")},
	} {
		bin := holder(segments)
		r, err := rewrite(bin, options())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if stay := bytes.Count(r.Wasm, []byte("nothing")); stay != strings.Count(name, "passive")*2 || len(r.Data) == 0 {
			t.Errorf("%s: %d segments were taken out, %d stay", name, len(r.Data), stay)
		}
		want, wantErr := memoryOf(t, bin, false)
		got, gotErr := memoryOf(t, bin, true)
		if !bytes.Equal(want, got) || firstLine(wantErr) != firstLine(gotErr) {
			t.Errorf("%s: plain %v, rewritten %v, same memory %t", name, wantErr, gotErr, bytes.Equal(want, got))
		}
	}
}

// memoryOf instantiates a module and returns its memory, or why it could not.
func memoryOf(t *testing.T, bin []byte, metered bool) ([]byte, error) {
	t.Helper()
	r, err := rewrite(bin, options())
	if err != nil {
		t.Fatal(err)
	}
	rt := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features()))
	t.Cleanup(func() { _ = rt.Close(context.WithoutCancel(t.Context())) })
	if _, err := rt.NewHostModuleBuilder("mortise:meter").NewFunctionBuilder().WithFunc(func() {}).Export("refill").Instantiate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if metered {
		bin = r.Wasm
	}
	m, err := rt.InstantiateWithConfig(t.Context(), bin, wazero.NewModuleConfig().WithName(""))
	if err == nil && metered {
		err = finish(t.Context(), m, r)
	}
	if err != nil {
		return nil, err
	}
	out, _ := m.Memory().Read(0, m.Memory().Size())
	return slices.Clone(out), nil
}

// TestRewrite_segmentNumbers names segments in code after some were taken out. By
// the specification an active segment counts as dropped once it was copied.
func TestRewrite_segmentNumbers(t *testing.T) {
	t.Parallel()
	segments := [][]byte{active(i32Const(100), "active"), passive("passive 1"), active(i32Const(200), "again"), passive("passive 3")}
	drops := enc(0xfc, 9, 0, 0xfc, 9, 2) // nothing to drop
	bin := holder(segments, initMemory(1, 9), initMemory(3, 9), initMemory(0, 1), initMemory(2, 1),
		enc(initMemory(0, 0), initMemory(2, 0), drops), enc(0xfc, 9, 1, initMemory(1, 1)), initMemory(3, 10))
	g := start(t, bin, true)
	for n, want := range []string{"passive 1", "passive 3", "out of bounds", "out of bounds", "passive 3", "out of bounds", "out of bounds"} {
		_, err := g.ExportedFunction("f" + string(rune('0'+n))).Call(t.Context())
		got, _ := g.Memory().Read(0, 9)
		if err == nil && string(got) != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("f%d: memory %q, %v, want %q", n, got, err, want)
		}
	}
	for at, want := range map[uint32]string{100: "active", 200: "again"} {
		if got, _ := g.Memory().Read(at, uint32(len(want))); string(got) != want {
			t.Errorf("at %d: %q, want %q", at, got, want)
		}
	}
}

// TestRewrite_dataStays leaves to the engine what is not known now, and what is wrong.
func TestRewrite_dataStays(t *testing.T) {
	t.Parallel()
	memory, data := sec(sMemory, enc(0, 1)), func(s ...[]byte) []byte { return sec(sData, s...) }
	global := sec(sImport, enc(sized("env"), sized("g"), 3, i32, 0))
	for name, c := range map[string]struct {
		bin   []byte
		valid bool
	}{
		"imported global":  {module(global, memory, data(active(enc(0x23, 0, end), "x"), active(i32Const(1), "y"))), true},
		"imported memory":  {module(sec(sImport, enc(sized("env"), sized("m"), 2, 0, 1)), data(active(i32Const(1), "x"))), true},
		"wrong count":      {module(memory, enc(sCount, sized(2)), data(active(i32Const(1), "x"))), false},
		"no memory":        {module(data(active(i32Const(1), "x"))), false},
		"second memory":    {module(memory, data(enc(2, 1, i32Const(1), sized("x")))), false},
		"two values":       {module(memory, data(active(enc(konst, 1, konst, 1, end), "x"))), false},
		"no value":         {module(memory, data(active(enc(end), "x"))), false},
		"another type":     {module(memory, data(active(enc(0x42, 1, end), "x"))), false},
		"too few values":   {module(memory, data(active(enc(konst, 1, 0x6a, end), "x"))), false},
		"number too large": {module(memory, data(active(enc(konst, "\xff\xff\xff\xff\x0f", end), "x"))), false},
		"a global's value": {module(memory, sec(sGlobal, enc(i32, 0, konst, 5, end)), data(active(enc(0x23, 0, end), "x"))), false},
		"code without count": {module(sec(sType, fn(nil, nil)), sec(sFunc, enc(0)), memory, sec(sCode, body(initMemory(0, 0))),
			data(active(i32Const(1), "x"))), false},
		"segment beyond the count": {holder([][]byte{active(i32Const(1), "x")}, initMemory(1, 0)), false},
	} {
		rt := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features()))
		t.Cleanup(func() { _ = rt.Close(context.WithoutCancel(t.Context())) })
		if _, err := rt.CompileModule(t.Context(), c.bin); (err == nil) != c.valid {
			t.Errorf("%s: the original: %v", name, err)
		}
		r, err := rewrite(c.bin, options())
		if err == nil {
			_, err = rt.CompileModule(t.Context(), r.Wasm)
		}
		if (err == nil) != c.valid {
			t.Errorf("%s: rewritten: %v", name, err)
		}
		if c.valid && len(r.Data) > 0 {
			t.Errorf("%s: segments were taken out", name)
		}
	}
}

// TestRewrite_start leaves the start function to the host, behind an export that
// code of the module cannot refer to.
func TestRewrite_start(t *testing.T) {
	t.Parallel()
	// The start function copies what the data put at 0 to 8, and calls another one.
	bin := module(sec(sType, fn(nil, nil)), sec(sFunc, enc(0), enc(0)), sec(sMemory, enc(0, 1)),
		sec(sExport, export("memory", 2, 0), export("mortise:start", 2, 0)), enc(sStart, sized(0)),
		sec(sCode, body(konst, 8, konst, 0, 0x28, 2, 0, 0x36, 2, 0, 0x10, 1), body()), sec(sData, active(i32Const(0), "data")))
	r, err := rewrite(bin, options())
	if err != nil {
		t.Fatal(err)
	}
	if r.Start != "mortise_mortise:start" {
		t.Errorf("the export is %q, although a name is taken", r.Start)
	}
	g := start(t, bin, true)
	if got, _ := g.Memory().Read(8, 4); string(got) != "data" {
		t.Errorf("the start function found %q", got)
	}
	if g.refills != 1 {
		t.Errorf("the start function was charged %d times", g.refills)
	}
	typed := module(sec(sType, fn(nil, enc(i32))), sec(sFunc, enc(0)), enc(sStart, sized(0)), sec(sCode, body(konst, 1)))
	if r, err := rewrite(typed, options()); err != nil || r.Start != "" {
		t.Errorf("a start function with a result: %+v, %v; the engine is to refuse it", r, err)
	}
}
