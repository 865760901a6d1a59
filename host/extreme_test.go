package host_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/host"
)

// TestExtreme_manyFunctions loads a module of 10,000 functions that call each other
// in a chain, and counts what the chain costs.
func TestExtreme_manyFunctions(t *testing.T) {
	t.Parallel()
	const n = 10_000
	funcs, bodies := make([][]byte, n), make([][]byte, n)
	for i := range n {
		funcs[i], bodies[i] = enc(0), body(0x10, leb(i+1)) // call the next one
	}
	bodies[n-1] = body(konst, 0)
	bin := wasmOf(sec(sType, fn(nil, enc(i32))), sec(sFunc, funcs...), sec(sExport, export("run", 0, 0)), sec(sCode, bodies...))
	begin := time.Now()
	m := load(t, host.EngineNative, host.Spec{Name: "many", Wasm: bin, Limits: host.Limits{Timeout: time.Minute}})
	t.Logf("loaded in %v", time.Since(begin))
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("loading took %v", took)
	}
	if used, err := fuelOf(t.Context(), m, "run", nil); err != nil || used != 2*n {
		t.Errorf("used %d, %v, want %d", used, err, 2*n)
	}
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
	onEngines(t, func(t *testing.T, e host.EngineName) {
		t.Helper()
		h := newHost(t, host.Config{Engine: e})
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
			printable(t, what+": inspection", p.Text+p.Mend)
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
	onEngines(t, func(t *testing.T, e host.EngineName) {
		t.Helper()
		h := newHost(t, host.Config{Engine: e})
		for _, c := range []struct {
			want string
			bin  []byte
		}{
			{"exceeds a limit: more than 50000 locals", code(billions)},
			{"exceeds a limit: more than 50000 locals", code(body(0xd2, 0, 0x14, 0), billions)},
			{"cannot be metered: type 0x63", code(sized(2, 1, 0x63, 0, "\xff\xff\xff\xff\x0f", i32, end))},
			{"is refused by the engine: ", code(body(0x06))},
		} {
			_, err := h.Load(t.Context(), host.Spec{Name: "locals", Wasm: c.bin})
			if !errors.Is(err, host.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		}
	})
}
