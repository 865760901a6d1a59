package host_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// TestExtreme_manyFunctions loads a module of 10,000 functions that call each other
// in a chain, and counts what the chain costs.
func TestExtreme_manyFunctions(t *testing.T) {
	t.Parallel()
	const n = 10_000
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("many_functions"), Limits: host.Limits{Timeout: time.Minute}})
		call(t, m, "run", "", "")
		if e != hosttest.Native {
			return
		}
		if used, err := fuelOf(t.Context(), m, "run", nil); err != nil || used != 2*n {
			t.Errorf("used %d, %v, want %d", used, err, 2*n)
		}
	})
}

// TestExtreme_namesInText loads modules with such names as a toolchain builds them, calls all that they export, and
// reads what is said of them.
func TestExtreme_namesInText(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("names")})
		exports := []string{"a\x00b\x1b[2J\r\n", "safe\u202egnp.exe\u2066\u200b\ufeff", `"; launch("`, "\x7f\u0085"}
		for _, name := range exports {
			_, err := m.Call(t.Context(), name, nil)
			if said := (*host.GuestError)(nil); !errors.As(err, &said) || said.Code != 1 {
				t.Errorf("%q: %v", name, err)
				continue
			}
			printable(t, "call", err.Error())
		}
		in, err := host.Inspect("names", watBytes(t, "names"))
		if err != nil || len(in.Exports) < len(exports) {
			t.Errorf("%d exports, %v", len(in.Exports), err)
		}
		_, err = newHost(t, host.Config{Engine: hosttest.Engine(e)}).Load(t.Context(), host.Spec{Path: wat("names_import")})
		if !errors.Is(err, host.ErrImport) {
			t.Fatalf("imports of an unknown module: %v", err)
		}
		printable(t, "import", err.Error())
	})
}

// names are what a module may call its things to confuse who reads about them.
func names() map[string]string {
	return map[string]string{
		"control":  "a\x00b\x1b[2J\r\n",
		"bidi":     "safe\u202egnp.exe\u2066\u200b\ufeff",
		"invalid":  "\xff\xfe\xc3(",
		"quotes":   `"; launch("`,
		"megabyte": strings.Repeat("\u202ex", 1<<18),
		"empty":    "",
	}
}

// printable wants a text that no terminal, log or reader is fooled by.
func printable(t *testing.T, what, text string) {
	t.Helper()
	if len(text) > 8<<10 || !utf8.ValidString(text) {
		t.Errorf("%s: %d bytes, valid %t", what, len(text), utf8.ValidString(text))
	}
	for _, r := range text {
		if r < ' ' || r == 0x7f || strings.ContainsRune("\u202e\u2066\u200b\ufeff", r) {
			t.Errorf("%s: %U is in %.200q", what, r, text)
			return
		}
	}
}

// TestExtreme_names puts names in every place where a module may have one.
func TestExtreme_names(t *testing.T) {
	t.Parallel()
	code := [][]byte{sec(sType, fn(nil, enc(i32))), sec(sFunc, enc(0)), sec(sExport, export("run", 0, 0)), sec(sCode, body(konst, 0))}
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		h := newHost(t, host.Config{Engine: hosttest.Engine(e)})
		for kind, name := range names() {
			places := map[string][]byte{
				"import":        wasmOf(sec(sType, fn(nil, nil)), sec(sImport, enc(sized(name), sized(name), 0, 0))),
				"host's import": wasmOf(sec(sType, fn(nil, nil)), sec(sImport, enc(sized("mortise:host/1"), sized(name), 0, 0))),
				"export":        wasmOf(code[0], code[1], sec(sExport, export(name, 0, 0)), code[3]),
				"custom":        wasmOf(append(code, enc(sCustom, sized(sized(name), name+"x")))...),
				"function":      wasmOf(append(code, enc(sCustom, sized(sized("name"), 1, sized(1, 0, sized(name)))))...),
				"module":        wasmOf(append(code, enc(sCustom, sized(sized("name"), 0, sized(sized(name)))))...),
			}
			for place, bin := range places {
				loadNamed(t, h, kind+" "+place, name, bin)
			}
		}
	})
}

// loadNamed loads, calls and inspects a module; a refusal must be readable.
func loadNamed(t *testing.T, h *host.Host, what, name string, bin []byte) {
	t.Helper()
	if in, err := host.Inspect(name, bin); err == nil {
		for _, p := range in.Problems {
			printable(t, what+": inspection", p.Problem+p.Hint)
		}
	} else {
		printable(t, what+": inspection", err.Error())
	}
	m, err := h.Load(t.Context(), host.Spec{Name: what, Path: name, Wasm: bin})
	if err != nil {
		var bad *host.LoadError
		if !errors.As(err, &bad) || bad.Module != what {
			t.Errorf("%s: %v", what, err)
		}
		printable(t, what, err.Error())
		return
	}
	_, err = m.Call(t.Context(), name, nil)
	if err != nil {
		printable(t, what+": call", fmt.Sprint(err))
	}
	if err := m.Close(t.Context()); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// TestExtreme_locals declares billions of locals in a few bytes, behind what the
// rewriter does not know too. No engine may see it: it would ask for gigabytes.
func TestExtreme_locals(t *testing.T) {
	t.Parallel()
	billions := sized(1, "\xff\xff\xff\xff\x0f", i32, end)
	code := func(bodies ...[]byte) []byte {
		funcs := make([][]byte, len(bodies))
		for i := range funcs {
			funcs[i] = enc(0)
		}
		return wasmOf(sec(sType, fn(nil, nil)), sec(sFunc, funcs...), sec(sCode, bodies...))
	}
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		h := newHost(t, host.Config{Engine: hosttest.Engine(e)})
		for _, c := range []struct {
			want      string
			bin       []byte
			unmetered bool
		}{
			{"asks too much of the compiler: exceeds a limit: more than 50000 locals", code(billions), false},
			{"exceeds a limit: more than 50000 locals", code(body(0xd2, 0, 0x14, 0), billions), true},
			{"exceeds a limit: more than 50000 locals", code(sized(2, 1, 0x63, 0, "\xff\xff\xff\xff\x0f", i32, end)), true},
		} {
			_, err := h.Load(t.Context(), host.Spec{Name: "locals", Wasm: c.bin})
			is := host.ErrLimit
			if c.unmetered && e == hosttest.Native { // which reads no further
				is, c.want = host.ErrInvalid, "cannot be metered"
			}
			if !errors.Is(err, is) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		}
		_, err := h.Load(t.Context(), host.Spec{Name: "unknown", Wasm: code(body(0x06))})
		if !errors.Is(err, host.ErrInvalid) || !strings.Contains(err.Error(), "is refused by the engine: ") {
			t.Errorf("an unknown instruction: %v", err)
		}
	})
}

// TestExtreme_compile refuses code that a compiler takes gigabytes for, on each engine and before the compiler sees
// it, and stops compiling when there is no more time for it.
func TestExtreme_compile(t *testing.T) {
	t.Parallel()
	const locals, loops = 3_000, 300
	var work [][]byte
	for i := range locals {
		work = append(work, enc(0x20, leb(i), konst, 1, 0x6a, 0x21, leb(i)))
	}
	bomb := wasmOf(sec(sType, fn(nil, enc(i32))), sec(sFunc, enc(0)), sec(sExport, export("run", 0, 0)),
		sec(sCode, sized(1, leb(locals), i32, bytes.Repeat(enc(0x03, 0x40), loops), bytes.Join(work, nil), bytes.Repeat(enc(end), loops), konst, 0, end)))
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		h := newHost(t, host.Config{Engine: hosttest.Engine(e), CacheDir: t.TempDir()})
		for _, c := range []struct {
			spec host.Spec
			want string
			is   error
		}{
			{host.Spec{Wasm: bomb}, "asks too much of the compiler: exceeds a limit: function 0 has 300 loops in one another, and 100 are allowed; " +
				"build it without inlining and unrolling so much, or split the function", host.ErrLimit},
			{host.Spec{Wasm: watBytes(t, "many_functions"), Limits: host.Limits{CompileTimeout: 1}}, "was not compiled within 1ns; " +
				"raise Limits.CompileTimeout, or build it smaller", host.ErrLimit},
		} {
			c.spec.Name = "slow"
			_, err := h.Load(t.Context(), c.spec)
			if !errors.Is(err, c.is) || err.Error() != `host: module "slow" `+c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		}
	})
}

// TestExtreme_compile_oneProcessor: with one processor, too.
func TestExtreme_compile_oneProcessor(t *testing.T) { //nolint:paralleltest // tests at the same time would have one, too
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, e := range engines() {
		h := newHost(t, host.Config{Engine: hosttest.Engine(e), CacheDir: t.TempDir()})
		_, err := h.Load(t.Context(), host.Spec{Name: "slow", Wasm: watBytes(t, "many_functions"), Limits: host.Limits{CompileTimeout: 1}})
		if !errors.Is(err, host.ErrLimit) {
			t.Errorf("%s: %v", e, err)
		}
	}
}

// TestExtreme_counts: a few bytes for each piece of a module would take a kilobyte of the host's memory.
func TestExtreme_counts(t *testing.T) {
	t.Parallel()
	many := func(id, n int, item ...any) []byte {
		return enc(id, sized(leb(n), bytes.Repeat(enc(item...), n)))
	}
	types, one, code := sec(sType, fn(nil, []byte{i32})), sec(sFunc, []byte{0}), sec(sCode, body(konst, 0))
	run := sec(sExport, export("run", 0, 0))
	global := enc(i32, 1, konst, 0, end)
	for want, bin := range map[string][]byte{
		"has 50001 types, and 50000 are allowed":       wasmOf(many(sType, 50_001, fn(nil, []byte{i32})), one, run, code),
		"has 10001 imports, and 10000 are allowed":     wasmOf(types, many(sImport, 10_001, sized("wasi_snapshot_preview1"), sized("fd_close"), 0, 0)),
		"has 250001 functions, and 250000 are allowed": wasmOf(types, many(sFunc, 250_001, 0), run, many(sCode, 250_001, body(konst, 0))),
		"has 101 tables, and 100 are allowed":          wasmOf(types, one, many(sTable, 101, 0x70, 0, 0), run, code),
		"has 10001 globals, and 10000 are allowed":     wasmOf(types, one, many(sGlobal, 10_001, global), run, code),
		"has 10005 sections, and 10000 are allowed":    append(wasmOf(types, one, run, code), bytes.Repeat(enc(sCustom, sized(sized("a"))), 10_001)...),
	} {
		in, err := host.Inspect("many", bin)
		if err != nil || len(in.Problems) != 1 || in.Problems[0].Problem != want || in.Problems[0].Err == nil {
			t.Errorf("inspected: %+v, %v; want %s", in.Problems, err, want)
		}
		_, err = newHost(t, host.Config{}).Load(t.Context(), host.Spec{Name: "many", Wasm: bin})
		if !errors.Is(err, host.ErrLimit) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
		_, err = newHost(t, host.Config{}).Load(t.Context(), host.Spec{Path: wat("echo"), Links: []host.Link{{Name: "many", Wasm: bin}}})
		if !errors.Is(err, host.ErrLimit) || !strings.Contains(err.Error(), `has the link "many", which `+want) {
			t.Errorf("linked: %v; want %s", err, want)
		}
	}
	fine := wasmOf(types, one, many(sTable, 100, 0x70, 0, 0), many(sGlobal, 10_000, global), run, code)
	call(t, load(t, hosttest.Native, host.Spec{Name: "fine", Wasm: fine}), "run", "", "")
}

// TestExtreme_tables: all tables of a module together stay below the bound of one. Without that a call took eight
// megabytes for each of them, whatever Limits.MemoryPages said.
func TestExtreme_tables(t *testing.T) {
	t.Parallel()
	const n = 100
	var grow []byte
	for i := range n { // grows the next one by 2^20-1, and adds what table.grow answers
		grow = append(grow, enc(0xd0, 0x70, konst, []byte{0xff, 0xff, 0x3f}, 0xfc, 15, leb(i))...)
		if i > 0 {
			grow = append(grow, 0x6a)
		}
	}
	bin := wasmOf(sec(sType, fn(nil, []byte{i32})), sec(sFunc, []byte{0}), enc(sTable, sized(leb(n), bytes.Repeat(enc(0x70, 0, 0), n))),
		sec(sExport, export("run", 0, 0)), sec(sCode, body(grow)))
	m := load(t, hosttest.Native, host.Spec{Name: "tables", Wasm: bin})
	_, err := m.Call(t.Context(), "run", nil)
	var refused *host.GuestError
	if !errors.As(err, &refused) || int32(refused.Code) != -(n-1) { // the first one was grown
		t.Errorf("%v", err)
	}
}

// throwing throws and catches n times, at the bottom of a recursion.
func throwing(n, depth int) []byte {
	round := enc(0x03, 0x40, // loop
		0x02, 0x40, 0x1f, 0x40, 1, 0x02, 0, 0x08, 0, end, end, // block, try_table (catch_all 0), throw 0
		0x20, 1, konst, 1, 0x6a, 0x22, 1, konst, leb(n), 0x49, 0x0d, 0, end) // count up, br_if
	down := sized(1, 1, i32, 0x20, 0, 0x45, 0x04, 0x40, round, 0x05, 0x20, 0, konst, 1, 0x6b, 0x10, 1, end, end)
	const tag = 13
	return wasmOf(sec(sType, fn(nil, []byte{i32}), fn(nil, nil), fn([]byte{i32}, nil)), sec(sFunc, []byte{0}, []byte{2}), sec(tag, enc(0, 1)),
		sec(sExport, export("run", 0, 0)), sec(sCode, body(konst, leb(depth), 0x10, 1, konst, 0), down))
}

// TestExtreme_throws: to throw takes thousands of times as long as another instruction, and longer the deeper the stack
// is. It is paid for, so that a guest that does nothing else is out of its code as often as any other.
func TestExtreme_throws(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	fuel := func(n, depth int) int64 {
		m, err := h.Load(t.Context(), host.Spec{Name: "throws", Wasm: throwing(n, depth), Limits: host.Limits{Timeout: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		call(t, m, "run", "", "")
		return m.Stats().Fuel
	}
	const throw = 1 << 15
	one, ten, deep := fuel(1, 1), fuel(10, 1), fuel(10, 60)
	if one < throw || one > throw+100 || ten < 10*throw || ten > 10*throw+1000 || deep < ten || deep > ten+1000 {
		t.Errorf("one throw costs %d, ten %d, and deep down %d", one, ten, deep)
	}
	m, err := h.Load(t.Context(), host.Spec{Name: "throws", Wasm: throwing(1<<20, 60), Limits: host.Limits{Timeout: time.Minute, Fuel: 5 * throw}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Call(t.Context(), "run", nil)
	_ = wantTrap(t, err, host.TrapFuel)
}
