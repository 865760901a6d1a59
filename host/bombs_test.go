package host_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// TestExtreme_bombs: a few kilobytes that would take an engine gigabytes or minutes are refused, on both engines, with
// what is too much and what to do.
func TestExtreme_bombs(t *testing.T) {
	t.Parallel()
	many := func(id, n int, item []byte) []byte { return enc(id, sized(leb(n), bytes.Repeat(item, n))) }
	zero, run := enc(konst, 0), sec(sExport, export("run", 0, 0))
	wide := bytes.Repeat(enc(i32), 1_000)
	module := func(functions int, sections ...[]byte) []byte {
		all := [][]byte{sec(sType, fn(nil, enc(i32)), fn(wide, wide)), many(sFunc, functions, enc(0)), run}
		return wasmOf(append(all, sections...)...)
	}
	calls := enc(bytes.Repeat(zero, 1_000), bytes.Repeat(enc(zero, 0x11, 1, 0), 900), bytes.Repeat(enc(0x1a), 999))
	const bigger, fewer = "; build it without inlining and unrolling so much, or split the function", "; build it with fewer, or as several modules"
	for want, bin := range map[string][]byte{
		"functions 0 to 40 have 2049959 locals together, and 2000000 are allowed" + bigger: module(1_000, many(sCode, 1_000, sized(1, leb(49_999), i32, zero, end))),
		"function 0 has 9000 ifs in one another, and 1000 are allowed" + bigger:            module(1, sec(sCode, body(bytes.Repeat(enc(zero, 0x04, 0x40), 9_000), bytes.Repeat(enc(end), 9_000), zero))),
		"operands of branches and calls, and 200000 are allowed" + bigger:                  module(1, sec(sCode, body(calls))),
		"function 0 has 100000 targets of br_table and catches, and 65520":                 module(1, sec(sCode, body(0x02, 0x40, 0x1f, 0x40, leb(100_000), bytes.Repeat(enc(2, 0), 100_000), end, end, zero))),
		"has 250001 elements, and 250000 are allowed" + fewer:                              module(1, enc(sElem, sized(1, 1, 0, leb(250_001), make([]byte, 250_001))), sec(sCode, body(zero))),
		"has 10001 element segments, and 10000 are allowed" + fewer:                        module(1, many(sElem, 10_001, enc(5, 0x70, 0)), sec(sCode, body(zero))),
		"has 250001 data segments, and 250000 are allowed" + fewer:                         module(1, enc(12, sized(leb(250_001))), sec(sCode, body(zero)), many(sData, 250_001, enc(1, 0))),
		"parameters and results of types, and 250000 are allowed" + fewer:                  wasmOf(many(sType, 1_000, fn(wide, nil)), many(sFunc, 1, enc(0)), sec(sCode, body(zero))),
		"has 1001 parameters of a type, and 1000 are allowed" + fewer:                      wasmOf(sec(sType, fn(enc(wide, i32), nil)), many(sFunc, 1, enc(0)), sec(sCode, body(zero))),
	} {
		onEngines(t, func(t *testing.T, e string) {
			t.Helper()
			_, err := newHost(t, host.Config{Engine: hosttest.Engine(e)}).Load(t.Context(), host.Spec{Name: "bomb", Wasm: bin})
			if !errors.Is(err, host.ErrLimit) || !strings.HasPrefix(err.Error(), `host: module "bomb" `) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v; want %s", err, want)
			}
		})
	}
}
