package wasm_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/wasm"
)

func leb(v int) string {
	var out []byte
	for ; v >= 0x80; v >>= 7 {
		out = append(out, byte(v)|0x80)
	}
	return string(append(out, byte(v)))
}

// sectionOf is a section with these parts.
func sectionOf(id byte, parts ...string) string {
	body := strings.Join(parts, "")
	return string(id) + leb(len(body)) + body
}

// listOf is a section that is a list of n equal items.
func listOf(id byte, n int, item string) string {
	return sectionOf(id, leb(n), strings.Repeat(item, n))
}

// TestParse_counts takes modules that have as many pieces of a kind as are allowed, and refuses one more.
func TestParse_counts(t *testing.T) {
	t.Parallel()
	const empty, func0 = "\x60\x00\x00", "\x01\x01\x60\x00\x00"
	typed := sectionOf(1, func0[1:])
	params := func(n int) string { return "\x60" + leb(n) + strings.Repeat("\x7f", n) + "\x00" }
	results := func(n int) string { return "\x60\x00" + leb(n) + strings.Repeat("\x7f", n) }
	names := func(each int) string { // in two maps
		subsection := func(id byte, prefix string) string {
			return sectionOf(id, prefix, leb(each), strings.Repeat("\x00\x00", each))
		}
		return sectionOf(0, "\x04name", subsection(1, ""), subsection(2, "\x01\x00"))
	}
	constant := func(n int) string { // of an active element segment without elements
		return sectionOf(9, "\x01\x00", strings.Repeat("\x41\x00", n), "\x0b\x00")
	}
	for _, c := range []struct {
		want string
		of   func(n int) string
		at   int
	}{
		{"50001 types, and 50000", func(n int) string { return listOf(1, n, empty) }, 50_000},
		{"1001 parameters of a type, and 1000", func(n int) string { return sectionOf(1, "\x01", params(n)) }, 1_000},
		{"1001 results of a type, and 1000", func(n int) string { return sectionOf(1, "\x01", results(n)) }, 1_000},
		{"251000 parameters and results of types, and 250000", func(n int) string { return listOf(1, n, params(1_000)) }, 250},
		{"10001 imports, and 10000", func(n int) string { return typed + listOf(2, n, "\x01a\x01b\x00\x00") }, 10_000},
		{"250001 functions, and 250000", func(n int) string { return typed + listOf(3, n, "\x00") + listOf(10, n, "\x02\x00\x0b") }, 250_000},
		{"101 tables, and 100", func(n int) string { return listOf(4, n, "\x70\x00\x00") }, 100},
		{"1001 tags, and 1000", func(n int) string { return typed + listOf(13, n, "\x00\x00") }, 1_000},
		{"10001 globals, and 10000", func(n int) string { return listOf(6, n, "\x7f\x00\x41\x00\x0b") }, 10_000},
		{"1048577 bytes of globals, and 1048576", func(n int) string { return sectionOf(6, "\x01", strings.Repeat("\x00", n-1)) }, 1 << 20},
		{"10001 element segments, and 10000", func(n int) string { return listOf(9, n, "\x01\x00\x00") }, 10_000},
		{"250001 elements, and 250000", func(n int) string {
			half := func(n int) string { return "\x01\x00" + leb(n) + strings.Repeat("\x00", n) }
			return sectionOf(9, "\x02", half(n/2), half(n-n/2))
		}, 250_000},
		{"a constant expression of more than 1000 instructions", constant, 999},
		{"250001 data segments, and 250000", func(n int) string { return listOf(11, n, "\x01\x00") }, 250_000},
		{"10001 sections, and 10000", func(n int) string { return strings.Repeat("\x00\x01\x00", n) }, 10_000},
		{"1000001 names, and 1000000", func(n int) string { return names(n) }, 499_999}, // and the function that the second map is of
	} {
		for n, want := range map[int]string{c.at: "", c.at + 1: c.want} {
			m, err := wasm.Parse([]byte(head + c.of(n)))
			if err == nil {
				err = m.Names
			}
			if want == "" && err != nil || want != "" && (!errors.Is(err, wasm.ErrLimit) || !strings.Contains(err.Error(), want)) {
				t.Errorf("%d pieces: %v, want %q", n, err, want)
			}
		}
	}
}

// TestParse_countsFirst: what is refused takes no memory for its pieces.
func TestParse_countsFirst(t *testing.T) { //nolint:paralleltest // it counts what is allocated
	many := []byte(head + listOf(1, 3_000_000, "\x60\x00\x00"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := wasm.Parse(many)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, wasm.ErrLimit) || n > 1<<20 {
		t.Errorf("%d bytes were allocated, %v", n, err)
	}
}
