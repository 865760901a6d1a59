package meter_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/wasm"
	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

// work has one function with this many locals and these instructions. Type 1 takes and leaves nothing, type 2 leaves
// 1,000 numbers.
func work(locals int, ops ...any) []byte {
	return module(sec(sType, fn(enc(i32), nil), fn(nil, nil), fn(nil, bytes.Repeat(enc(i32), 1000))), sec(sFunc, enc(0)), sec(sTable, enc(funcref, 0, 4)),
		sec(sCode, sized(1, leb(locals), i32, enc(ops...), end)))
}

func times(n int, ops ...any) []byte { return bytes.Repeat(enc(ops...), n) }

// uses reads the locals up to one.
func uses(locals int) []byte {
	var out []byte
	for i := range locals {
		out = append(out, enc(get, leb(i), drop)...)
	}
	return out
}

// TestRewrite_effort refuses functions that a compiler takes gigabytes or minutes for, metered or not, and takes what is at
// the limit.
func TestRewrite_effort(t *testing.T) {
	t.Parallel()
	once := enc(loop, 0x40, end)
	call, table := enc(konst, 0, 0x11, 2, 0), enc(get, 0, 0x0e)
	nestedIf, indirect := enc(konst, 0, 0x04, 0x40), enc(konst, 0, 0x11, 1, 0)
	division, load := enc(konst, 1, konst, 1, 0x6d, drop), enc(konst, 0, 0x28, 2, 0, drop)
	fill := enc(konst, 0, konst, 0, konst, 0, 0xfc, 11, 0)
	// tries is a try_table with this many catches, of any exception.
	tries := func(catches int) []byte { return enc(0x1f, 0x40, leb(catches), times(catches, 2, 0)) }
	for _, c := range []struct {
		want     string
		at, over []byte
	}{
		{"2001 loops, and 2000 are allowed", work(0, times(2_000, once)), work(0, times(2_001, once))},
		{"101 loops in one another, and 100", work(0, times(100, loop, 0x40), times(100, end)), work(0, times(101, loop, 0x40), times(101, end))},
		{"25001 branches, and 25000", work(0, times(25_000, 0x02, 0x40, end)), work(0, times(25_001, 0x02, 0x40, end))},
		{"200100 loops times locals", work(1999, uses(2000), times(100, once)), work(2000, uses(2001), times(100, once))},
		{"2001000 branches times locals", work(999, uses(1000), times(2000, 0x02, 0x40, end)), work(999, uses(1000), times(2001, 0x02, 0x40, end))},
		{"65521 targets of br_table and catches", work(0, table, leb(65_520), times(65_521, 0)), work(0, table, leb(65_521), times(65_522, 0))},
		{"201000 operands of branches and calls", work(0, times(200, call), 0x00), work(0, times(201, call), 0x00)},
		{"10001 blocks in one another", work(0, times(10_000, 0x02, 0x40), times(10_000, end)), work(0, times(10_001, 0x02, 0x40), times(10_001, end))},
		{"1001 ifs in one another", work(0, times(1_000, nestedIf), times(1_000, end)), work(0, times(1_001, nestedIf), times(1_001, end))},
		{"65521 targets of br_table and catches", work(0, tries(65_520), end), work(0, tries(65_521), end)},
		{"60002 calls and instructions that may trap", work(0, times(30_000, division, load)), work(0, times(30_001, division, load))},
		{"60003 calls and instructions that may trap", work(0, times(20_000, indirect)), work(0, times(20_001, indirect))},
		{"25003 branches", work(0, times(8_333, fill)), work(0, times(8_334, fill), 0x02, 0x40, end)},
		{"1048577 bytes", work(0, times(1<<20-4, 0x01)), work(0, times(1<<20-3, 0x01))},
	} {
		for _, check := range []func(bin []byte) error{
			func(bin []byte) error { _, err := rewrite(bin, options()); return err },
			func(bin []byte) error {
				m, err := wasm.Parse(bin)
				if err == nil {
					err = meter.Check(m)
				}
				return err
			},
		} {
			if err := check(c.at); err != nil {
				t.Errorf("at the limit: %v, want none; over it is %s", err, c.want)
			}
			if err := check(c.over); !errors.Is(err, meter.ErrLimit) || !strings.Contains(err.Error(), "function 0 has "+c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		}
	}
}

// TestCheck_typedReferences reads on behind what cannot be metered, so that nothing hides behind it.
func TestCheck_typedReferences(t *testing.T) {
	t.Parallel()
	many := times(2_001, loop, 0x40, end)
	for _, ops := range [][]byte{
		enc(0x00, 0x14, 1), enc(0xd0, 1, 0xd4, drop), enc(0xd0, 1, 0xd5, 0, drop), enc(0xd0, 1, 0xd6, 0), enc(0x02, 0x63, 1, 0xd0, 1, end, drop), enc(0x00, 0x15, 1),
	} {
		m, err := wasm.Parse(work(0, ops, many))
		if err != nil {
			t.Fatal(err)
		}
		if err := meter.Check(m); !errors.Is(err, meter.ErrLimit) {
			t.Errorf("% x: %v", ops, err)
		}
	}
	for name, bin := range map[string][]byte{
		"locals behind a type":    module(sec(sType, fn(nil, nil)), sec(sFunc, enc(0)), sec(sCode, sized(2, 1, 0x63, 0, "\xff\xff\xff\xff\x0f", i32, end))),
		"locals behind a call":    module(sec(sType, fn(nil, nil)), sec(sFunc, enc(0), enc(0)), sec(sCode, body(0x00, 0x14, 0), sized(1, "\xff\xff\xff\xff\x0f", i32, end))),
		"bodies without function": module(sec(sType, fn(nil, nil)), sec(sFunc, enc(0)), sec(sCode, body(), body())),
	} {
		m, err := wasm.Parse(bin)
		if err == nil {
			err = meter.Check(m)
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
