package meter_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/wasm"
	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

// alike has n functions with the same body. Type 1 takes 1,000 numbers.
func alike(n int, one []byte) []byte {
	funcs := enc(sFunc, sized(leb(n), make([]byte, n)))
	code := enc(sCode, sized(leb(n), bytes.Repeat(one, n)))
	return module(sec(sType, fn(nil, nil), fn(bytes.Repeat(enc(i32), 1_000), nil)), funcs, sec(sTable, enc(funcref, 0, 4)), sec(sMemory, enc(0, 1)), code)
}

// TestRewrite_total refuses modules whose functions ask for too much together, metered or not, and takes what is at the
// limit.
func TestRewrite_total(t *testing.T) {
	t.Parallel()
	locals := sized(1, leb(50_000), i32, end)
	calls := sized(0, 0x00, times(200, 0x11, 1, 0), end)
	for _, c := range []struct {
		want     string
		at, over []byte
	}{
		{"functions 0 to 40 have 2050000 locals together, and 2000000 are allowed", alike(40, locals), alike(41, locals)},
		{"functions 0 to 50 have 10200000 operands of branches and calls together, and 10000000 are allowed", alike(50, calls), alike(51, calls)},
	} {
		for _, check := range []func(m *wasm.Module) error{
			func(m *wasm.Module) error { _, err := meter.Rewrite(m, options()); return err },
			meter.Check,
		} {
			if err := check(parsed(t, c.at)); err != nil {
				t.Errorf("at the limit: %v, want none; over it is %s", err, c.want)
			}
			if err := check(parsed(t, c.over)); !errors.Is(err, meter.ErrLimit) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		}
	}
}

// TestRewrite_helpers: a function that is added for a few bytes of the module takes a compiler kilobytes.
func TestRewrite_helpers(t *testing.T) {
	t.Parallel()
	inits := func(n int) []byte {
		var bodies [][]byte
		for from := 0; from < n; from += 1_000 { // a function has that many at most
			var ops []byte
			for segment := from; segment < min(n, from+1_000); segment++ {
				ops = append(ops, enc(konst, 0, konst, 0, konst, 0, 0xfc, 8, leb(segment), 0)...)
			}
			bodies = append(bodies, body(ops))
		}
		return module(sec(sType, fn(nil, nil)), enc(sFunc, sized(leb(len(bodies)), make([]byte, len(bodies)))), sec(sMemory, enc(0, 1)),
			enc(sCount, sized(leb(n))), sec(sCode, bodies...), enc(sData, sized(leb(n), bytes.Repeat(enc(1, 0), n))))
	}
	if _, err := rewrite(inits(9_999), options()); err != nil { // and the one that charges
		t.Errorf("at the limit: %v", err)
	}
	_, err := rewrite(inits(10_000), options())
	if !errors.Is(err, meter.ErrLimit) || !strings.Contains(err.Error(), "more than 10000 different instructions that work on ranges") {
		t.Errorf("over the limit: %v", err)
	}
}

func parsed(t *testing.T, bin []byte) *wasm.Module {
	t.Helper()
	m, err := wasm.Parse(bin)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
