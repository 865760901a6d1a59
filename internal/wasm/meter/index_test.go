package meter_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/internal/wasm"
	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

// segments are element segments of each kind that hold the import env.one and
// function 2, which returns 22. What has no place in the table by itself is put
// there by prepare.
func segments() map[int]struct{ segment, prepare []byte } {
	zero, refs := enc(konst, 0, end), vec(enc(0xd2, 0, end), enc(0xd2, 2, end))
	initTable := enc(konst, 0, konst, 0, konst, 2, 0xfc, 12, 0, 0)
	setTable := enc(konst, 0, 0xd2, 0, 0x26, 0, konst, 1, 0xd2, 2, 0x26, 0)
	indices := vec(enc(0), enc(2))
	return map[int]struct{ segment, prepare []byte }{
		0: {enc(0, zero, indices), nil},
		1: {enc(1, 0, indices), initTable},
		2: {enc(2, 0, zero, 0, indices), nil},
		3: {enc(3, 0, indices), setTable},
		4: {enc(4, zero, refs), nil},
		5: {enc(5, funcref, refs), initTable},
		6: {enc(6, 0, zero, funcref, refs), nil},
		7: {enc(7, funcref, refs), setTable},
	}
}

// segmentModule exports at(i), which calls element i of the table.
func segmentModule(segment, prepare []byte) []byte {
	return module(
		sec(sType, fn(nil, enc(i32)), fn(enc(i32), enc(i32))),
		sec(sImport, enc(sized("env"), sized("one"), 0, 0)),
		sec(sFunc, enc(1), enc(0)),
		sec(sTable, enc(funcref, 0, 2)),
		sec(sExport, export("at", 0, 1)),
		sec(sElem, segment),
		sec(sCode, body(prepare, get, 0, 0x11, 0, 0), body(konst, 22)),
	)
}

func TestRewrite_segments(t *testing.T) {
	t.Parallel()
	for flags, s := range segments() {
		t.Run(fmt.Sprintf("flags %d", flags), func(t *testing.T) {
			t.Parallel()
			for _, metered := range []bool{false, true} {
				g := start(t, segmentModule(s.segment, s.prepare), metered)
				if a, b := g.run(t, "at", 0)[0], g.run(t, "at", 1)[0]; a != 1 || b != 22 {
					t.Errorf("metered %t: the table answers %d and %d, want 1 and 22", metered, a, b)
				}
			}
		})
	}
}

// TestRewrite_segmentBytes shows the segments as they are written: function 0 is
// the import and stays, function 2 becomes 3.
func TestRewrite_segmentBytes(t *testing.T) {
	t.Parallel()
	for flags, s := range segments() {
		r, err := rewrite(segmentModule(s.segment, s.prepare), options())
		if err != nil {
			t.Fatal(err)
		}
		got := section(t, r.Wasm, sElem)
		want := vec(s.segment)
		// The last function index stands at the end, before an end of its own if it
		// is an expression.
		at := len(want) - 1
		if flags >= 4 {
			at--
		}
		want[at] = 3
		if !bytes.Equal(got, want) {
			t.Errorf("flags %d: % x, want % x", flags, got, want)
		}
	}
}

// section returns the body of a section of a binary.
func section(t *testing.T, bin []byte, id byte) []byte {
	t.Helper()
	m, err := wasm.Parse(bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range m.Sections {
		if s.ID == id {
			return s.Body
		}
	}
	return nil
}

// TestRewrite_functionIndices covers the places outside of element segments: call,
// return_call, ref.func in code and in a global, the start function and exports.
func TestRewrite_functionIndices(t *testing.T) {
	t.Parallel()
	bin := module(
		sec(sType, fn(nil, enc(i32)), fn(nil, nil)),
		sec(sImport, enc(sized("env"), sized("one"), 0, 0)),
		sec(sFunc, enc(0), enc(0), enc(0), enc(1), enc(0), enc(0)),
		sec(sTable, enc(funcref, 0, 1)),
		sec(sGlobal, enc(funcref, 0, 0xd2, 6, end), enc(i32, 1, konst, 0, end)),
		sec(sExport, export("calls", 0, 1), export("tail", 0, 2), export("refs", 0, 3),
			export("started", 0, 5), export("one", 0, 0), export("g", 3, 1)),
		enc(sStart, sized(4)),
		sec(sCode,
			body(0x10, 6, 0x10, 0, 0x6a), // 1: call 6 + call 0
			body(0x12, 6),                // 2: return_call 6
			body(konst, 0, 0x23, 0, 0x26, 0, konst, 0, 0x11, 0, 0), // 3: table[0] = global 0; call it
			body(0x10, 6, drop, konst, 5, 0x24, 1),                 // 4: call 6; global 1 = 5
			body(0x23, 1),                                          // 5: global 1
			body(konst, 33),                                        // 6
		),
	)
	plain, metered := start(t, bin, false), start(t, bin, true)
	for export, want := range map[string]uint64{"calls": 34, "tail": 33, "refs": 33, "started": 5, "one": 1} {
		if a, b := plain.run(t, export)[0], metered.run(t, export)[0]; a != want || b != want {
			t.Errorf("%s: plain %d, metered %d, want %d", export, a, b, want)
		}
	}
	if metered.refills != 1 {
		t.Errorf("the start function ran with %d refills, want 1: its counter starts at zero", metered.refills)
	}
	if g := metered.ExportedGlobal("g"); g == nil || g.Get() != 5 {
		t.Errorf("global g is %v", g)
	}
}

// TestRewrite_names moves functions and the owners of locals in the name section, leaves a
// section out that it cannot read, and names the functions that it adds.
func TestRewrite_names(t *testing.T) {
	t.Parallel()
	names := func(content ...any) []byte {
		return module(
			sec(sType, fn(nil, enc(i32))),
			sec(sImport, enc(sized("env"), sized("one"), 0, 0)),
			sec(sFunc, enc(0)),
			sec(sExport, export("f", 0, 1)),
			sec(sCode, body(konst, 1)),
			enc(sCustom, sized(sized("name"), enc(content...))),
		)
	}
	module0 := enc(0, sized(sized("m")))
	functions := func(index int) []byte {
		return enc(1, sized(vec(enc(0, sized("one")), enc(index, sized("f")))))
	}
	helper := enc(3, sized(meter.HelperName)) // of which this module has one, the last function
	added := enc(1, sized(vec(helper)))
	locals := func(index int) []byte {
		return enc(2, sized(vec(enc(index, vec(enc(0, sized("x")), enc(1, sized("y")))))))
	}
	globals := enc(7, sized(vec(enc(1, sized("g")))))
	r, err := rewrite(names(module0, functions(1), locals(1), globals), options())
	if err != nil {
		t.Fatal(err)
	}
	m, err := wasm.Parse(r.Wasm)
	if err != nil {
		t.Fatal(err)
	}
	moved := enc(1, sized(vec(enc(0, sized("one")), enc(2, sized("f")), helper)))
	if got, want := m.Section("name"), enc(module0, moved, locals(2), globals); !bytes.Equal(got, want) {
		t.Errorf("got  % x\nwant % x", got, want)
	}
	for _, content := range [][]byte{enc(module0, locals(1)), module0, globals, nil} { // no function has a name
		r, err := rewrite(names(content), options())
		if err != nil {
			t.Fatal(err)
		}
		m, err := wasm.Parse(r.Wasm)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Section("name"); bytes.Count(got, added) != 1 || len(got) != len(content)+len(added) {
			t.Errorf("of % x: % x", content, got)
		}
	}
	for what, content := range map[string][]byte{
		"cut off": enc(1, 9, 1, 1), "count": enc(1, sized(leb(1000))), "number": enc(1, sized(1, "\xff\xff\xff\xff\xff")),
		"function 2 of 2": enc(1, sized(vec(enc(2, sized("f"))))), "last index": enc(1, sized(vec(enc("\xff\xff\xff\xff\x0f", sized("f"))))),
		"module name":  enc(0, sized("\xff\xff\xff\xff\x0f")),
		"bytes behind": enc(1, sized(vec(enc(1, sized("f"))), 0)),
	} {
		r, err := rewrite(names(content), options())
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if m, err := wasm.Parse(r.Wasm); err != nil || !bytes.Equal(m.Section("name"), added) {
			t.Errorf("%s: a section that cannot be read was kept: %v", what, err)
		}
	}
}

// TestRewrite_result looks at what the host receives, and that debug sections go
// and others stay.
func TestRewrite_result(t *testing.T) {
	t.Parallel()
	bin := module(
		sec(sType, fn(nil, nil)),
		sec(sFunc, enc(0)),
		sec(sGlobal, enc(i32, 0, konst, 1, end), enc(i64, 1, 0x42, 1, end), enc(i32, 1, konst, 1, end)),
		sec(sExport, export("mortise:g1", 0, 0), export("f", 0, 0)),
		sec(sCode, body()),
		enc(sCustom, sized(sized(".debug_line"), "offsets")),
		enc(sCustom, sized(sized("producers"), "kept")),
	)
	before := bytes.Clone(bin)
	r, err := rewrite(bin, options())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bin, before) {
		t.Error("the input was changed")
	}
	// The module already uses the prefix, so another one is taken.
	if r.Counter != "mortise_mortise:fuel" || r.Stateful || len(r.Globals) != 2 ||
		r.Globals[0].Export != "mortise_mortise:g1" || r.Globals[0].Type != wasm.I64 || r.Globals[1].Export != "mortise_mortise:g2" {
		t.Errorf("%q, %+v, stateful %t", r.Counter, r.Globals, r.Stateful)
	}
	m, err := wasm.Parse(r.Wasm)
	if err != nil {
		t.Fatal(err)
	}
	if m.Section(".debug_line") != nil || string(m.Section("producers")) != "kept" {
		t.Error("custom sections")
	}
	if !slices.ContainsFunc(m.Imports, func(im wasm.Import) bool { return im.Module == "mortise:meter" && im.Name == "refill" }) {
		t.Errorf("imports %+v", m.Imports)
	}
}
