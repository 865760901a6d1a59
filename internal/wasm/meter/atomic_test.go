package meter_test

import (
	"strings"
	"testing"
)

// waiter exports wait32 and wait64 (address, expected, timeout) over a memory with
// these limits; the first eight bytes are 7.
func waiter(limits []byte) []byte {
	wait := func(sub, align int) []byte { return body(get, 0, get, 1, get, 2, 0xfe, sub, align, 0) }
	return module(sec(sType, fn(enc(i32, i32, i64), enc(i32)), fn(enc(i32, i64, i64), enc(i32))),
		sec(sFunc, enc(0), enc(1)), sec(sMemory, limits), sec(sExport, export("wait32", 0, 0), export("wait64", 0, 1)),
		sec(sCode, wait(1, 2), wait(2, 3)), sec(sData, active(i32Const(0), "\x07\x00\x00\x00\x00\x00\x00\x00")))
}

// TestRewrite_wait waits where no other thread is: the answer comes at once, and
// who would wait for ever traps. The engine's instruction could not be stopped.
func TestRewrite_wait(t *testing.T) {
	t.Parallel()
	const forever, hour = 1<<64 - 1, 3_600_000_000_000
	shared, own := start(t, waiter(enc(3, 1, 1)), true), start(t, waiter(enc(0, 1)), true)
	for _, c := range []struct {
		g                     *guest
		addr, expect, timeout uint64
		want                  uint64
		trap                  string
	}{
		{shared, 0, 7, 0, 2, ""},
		{shared, 0, 7, hour, 2, ""},
		{shared, 0, 8, hour, 1, ""},
		{shared, 0, 8, forever, 1, ""},
		{shared, 0, 7, forever, 0, "unreachable"},
		{shared, 1, 7, 0, 0, "unaligned atomic"},
		{shared, 1 << 16, 7, 0, 0, "out of bounds memory access"},
		{own, 0, 7, 0, 0, "expected shared memory"},
		{own, 0, 8, forever, 0, "expected shared memory"},
	} {
		for _, name := range []string{"wait32", "wait64"} {
			out, err := c.g.ExportedFunction(name).Call(t.Context(), c.addr, c.expect, c.timeout)
			if c.trap != "" && (err == nil || !strings.Contains(err.Error(), c.trap)) || c.trap == "" && (err != nil || out[0] != c.want) {
				t.Errorf("%s(%d, %d, %d) = %v, %v, want %d %s", name, c.addr, c.expect, int64(c.timeout), out, err, c.want, c.trap)
			}
		}
	}
	shared.fuel()
	shared.run(t, "wait32", 0, 7, 0)
	if used := shared.fuel(); used != 5 {
		t.Errorf("a wait used %d units, want those of its function: 5", used)
	}
}
