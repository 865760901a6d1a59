package meter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/mortise-dev/mortise/internal/wasm"
	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

// intrusion is a module that uses an index which only exists once it is rewritten.
type intrusion struct {
	name string
	bin  []byte
}

// intruder has types 0: () -> (), 1: () -> i32, an import, function 1 with these
// instructions, and a global. Added are types 2 (the refill's) and 3 (the charge's),
// function 1 (the refill) and 3 (the charge), and global 1.
func intruder(ops []byte, more ...[]byte) []byte {
	sections := map[byte][]byte{
		sType:   sec(sType, fn(nil, nil), fn(nil, enc(i32))),
		sImport: sec(sImport, enc(sized("env"), sized("one"), 0, 1)),
		sFunc:   sec(sFunc, enc(0)),
		sTable:  sec(sTable, enc(funcref, 0, 4)),
		sGlobal: sec(sGlobal, enc(i64, 1, 0x42, 0, end)),
		sExport: sec(sExport, export("f", 0, 1)),
		sCode:   sec(sCode, body(ops)),
	}
	for _, s := range more {
		sections[s[0]] = s
	}
	var out [][]byte
	for _, id := range []byte{sType, sImport, sFunc, sTable, sMemory, sTag, sGlobal, sExport, sStart, sElem, sCount, sCode, sData} {
		out = append(out, sections[id])
	}
	return module(out...)
}

func intrusions() []intrusion {
	element := func(parts ...any) []byte { return intruder(nil, sec(sElem, enc(parts...))) }
	zero := enc(konst, 0, end)
	// dispatch has a table with these labels, and a jump to the piece of the second one.
	dispatch := func(labels ...int) []byte {
		table := enc(0x0e, 1, labels[0], leb(labels[1]))
		return intruder(nil, sec(sCode, sized(1, 1, i32, loop, 0x40, 0x02, 0x40, 0x02, 0x40, get, 0, table, end,
			konst, 1, 0x21, 0, 0x0c, 1, end, end, end)))
	}
	return []intrusion{
		{"read the counter", intruder(enc(0x23, 1, drop))},
		{"fill up the counter", intruder(enc(0x42, 0, 0x24, 1))},
		{"call the charge", intruder(enc(0x42, 0x40, 0x10, 2))},
		{"call behind the functions", intruder(enc(0x10, 2))},
		{"tail call", intruder(enc(0x12, 2))},
		{"ref.func", intruder(enc(0xd2, 2, drop))},
		{"use the added local", intruder(enc(get, 0, drop))},
		{"set the added local", intruder(enc(0x42, 0, 0x21, 0))},
		{"tee the added local", intruder(enc(0x42, 0, 0x22, 0, drop))},
		{"call_indirect with the refill's type", intruder(enc(konst, 0, 0x11, 2, 0))},
		{"return_call_indirect", intruder(enc(konst, 0, 0x13, 2, 0))},
		{"block with the refill's type", intruder(enc(0x02, 2, end))},
		{"loop with the refill's type", intruder(enc(loop, 2, end))},
		{"if with the refill's type", intruder(enc(konst, 0, 0x04, 2, end))},
		{"try_table with the refill's type", intruder(enc(0x1f, 2, 0, end))},
		{"dead code", intruder(enc(0x00, 0x10, 2))},
		{"function of the refill's type", intruder(nil, sec(sFunc, enc(2)))},
		{"import of the refill's type", intruder(nil, sec(sImport, enc(sized("env"), sized("one"), 0, 2)))},
		{"tag of the refill's type", intruder(nil, sec(sTag, enc(0, 2)))},
		{"export of a function", intruder(nil, sec(sExport, export("f", 0, 2)))},
		{"export of the counter", intruder(nil, sec(sExport, export("f", 3, 1)))},
		{"start function", intruder(nil, enc(sStart, sized(2)))},
		{"global that starts as the counter", intruder(nil, sec(sGlobal, enc(i64, 1, 0x23, 1, end)))},
		{"global that refers to a function", intruder(nil, sec(sGlobal, enc(funcref, 1, 0xd2, 2, end)))},
		{"jump beyond the function", dispatch(0, 4)},
		{"jump far beyond", dispatch(0, 1<<32-1)},
		{"element", element(0, zero, vec(enc(2)))},
		{"passive element", element(1, 0, vec(enc(2)))},
		{"element of a table", element(2, 0, zero, 0, vec(enc(2)))},
		{"declared element", element(3, 0, vec(enc(2)))},
		{"element expression", element(4, zero, vec(enc(0xd2, 2, end)))},
		{"passive expression", element(5, funcref, vec(enc(0xd2, 2, end)))},
		{"expression of a table", element(6, 0, zero, funcref, vec(enc(0xd2, 2, end)))},
		{"declared expression", element(7, funcref, vec(enc(0xd2, 2, end)))},
		{"element at the counter", element(0, 0x23, 1, end, vec(enc(0)))},
		{"data at the counter", intruder(nil, sec(sMemory, enc(0, 1)), sec(sData, enc(0, 0x23, 1, end, sized("x"))))},
	}
}

// TestRewrite_intruders wants each of them refused by the parser, by the rewriter,
// or by the engine that compiles the result.
func TestRewrite_intruders(t *testing.T) {
	t.Parallel()
	rt := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features()))
	t.Cleanup(func() { _ = rt.Close(t.Context()) })
	if _, err := rewrite(intruder(enc(0x23, 0, drop)), options()); err != nil {
		t.Fatalf("the module without an intrusion: %v", err)
	}
	for _, in := range intrusions() {
		if _, err := rt.CompileModule(t.Context(), in.bin); err == nil {
			t.Errorf("%s: the engine takes the original", in.name)
		}
		r, err := rewrite(in.bin, options())
		if err == nil {
			if _, err = rt.CompileModule(t.Context(), r.Wasm); err != nil {
				t.Logf("%s: only the engine refuses it: %s", in.name, firstLine(err))
				continue
			}
			t.Errorf("%s: became valid", in.name)
			continue
		}
		if !errors.Is(err, meter.ErrInvalid) && !errors.Is(err, wasm.ErrMalformed) {
			t.Errorf("%s: %v", in.name, err)
		}
	}
}

// TestRewrite_refusals words what is wrong.
func TestRewrite_refusals(t *testing.T) {
	t.Parallel()
	memories := func(m ...[]byte) []byte { return intruder(nil, sec(sMemory, m...)) }
	for _, c := range []struct {
		name, want string
		bin        []byte
		kind       error
	}{
		{"function", "meter: is invalid: function 2 of 2 at offset", intruder(enc(0x10, 2)), meter.ErrInvalid},
		{"local", "meter: is invalid: local 0 of 0 at offset", intruder(enc(get, 0, drop)), meter.ErrInvalid},
		{"no end", "meter: is invalid: function without an end", intruder(nil, sec(sCode, sized(0, 0x01))), meter.ErrInvalid},
		{"code behind the end", "meter: is invalid: code after the end", intruder(enc(end)), meter.ErrInvalid},
		{"table", "meter: is invalid: table 1 at offset", intruder(enc(0xd0, funcref, konst, 0, 0xfc, 15, 1, drop)), meter.ErrInvalid},
		{"segment flags", "element segment flags 8", intruder(nil, sec(sElem, enc(8, 0, 0))), wasm.ErrMalformed},
		{"locals", "meter: exceeds a limit: more than 50000 locals", intruder(nil, sec(sCode, sized(1, leb(50_001), i32, end))), meter.ErrLimit},
		{"locals behind an unknown opcode", "cannot be metered: opcode 0x06", module(sec(sType, fn(nil, nil)), sec(sFunc, enc(0), enc(0)),
			sec(sCode, body(0x06), sized(1, "\xff\xff\xff\xff\x0f", i32, end))), meter.ErrUnsupported},
		{"data segments", "100663296 data segments do not fit", intruder(nil, enc(sData, sized("\x80\x80\x800\x80c"))), wasm.ErrMalformed},
		{"data bytes", "4294967295 bytes of data do not fit", intruder(nil, enc(sData, sized(1, 1, "\xff\xff\xff\xff\x0f"))), wasm.ErrMalformed},
		{"data flags", "data segment flags 3", intruder(nil, sec(sData, enc(3, 0))), wasm.ErrMalformed},
		{"data offset", "meter: is invalid: global 1 of 1", intruder(nil, sec(sMemory, enc(0, 1)), sec(sData, enc(0, 0x23, 1, end, 0))), meter.ErrInvalid},
		{"unknown atomic", "cannot be metered: opcode 0xfe 79", intruder(enc(0xfe, 0x4f, 2, 0)), meter.ErrUnsupported},
		{"typed function references", "cannot be metered: opcode 0x14", intruder(enc(0xd2, 1, 0x14, 0)), meter.ErrUnsupported},
		{"select of an added type", "cannot be metered: type 0x64", intruder(enc(0x00, 0x1c, 1, 0x64, 2, drop)), meter.ErrUnsupported},
		{"local of an added type", "cannot be metered: type 0x63", intruder(nil, sec(sCode, sized(1, 1, 0x63, 2, end))), meter.ErrUnsupported},
		{"locals hidden by a type", "cannot be metered: type 0x63", intruder(nil, sec(sCode, sized(2, 1, 0x63, 0, "\xff\xff\xff\xff\x0f", i32, end))), meter.ErrUnsupported},
		{"null of an added type", "cannot be metered: type 0x02", intruder(enc(0xd0, 2, drop)), meter.ErrUnsupported},
		{"block of an added type", "cannot be metered: type 0x63", intruder(enc(0x02, 0x63, 2, end)), meter.ErrUnsupported},
		{"block type below zero", "meter: is invalid: block type below zero", intruder(enc(0x02, "\xff\x7f", end)), meter.ErrInvalid},
		{"global of an added type", "cannot be metered: type 0x63", intruder(nil, sec(sGlobal, enc(0x63, 1, 0, 0xd0, 1, end))), meter.ErrUnsupported},
		{"elements of an added type", "element type 0x63", intruder(nil, sec(sElem, enc(5, 0x63, 0, 0))), wasm.ErrUnsupported},
		{"element kind", "element kind 1", intruder(nil, sec(sElem, enc(1, 1, 0))), wasm.ErrMalformed},
		{"relaxed SIMD", "cannot be metered: relaxed SIMD 256", intruder(enc(0xfd, leb(256))), meter.ErrUnsupported},
		{"unknown", "cannot be metered: opcode 0x06", intruder(enc(0x06)), meter.ErrUnsupported},
		{"unknown bulk", "cannot be metered: opcode 0xfc 18", intruder(enc(0xfc, 18)), meter.ErrUnsupported},
		{"two memories", "cannot be metered: more than one memory", memories(enc(0, 1), enc(0, 1)), meter.ErrUnsupported},
		{"imported shared memory", "imported shared memory", module(sec(sImport, enc(sized("env"), sized("m"), 2, 3, 1, 1))), meter.ErrUnsupported},
		{"64-bit memory", "cannot be metered: 64-bit memory", memories(enc(4, 1)), meter.ErrUnsupported},
	} {
		_, err := rewrite(c.bin, options())
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if _, err := rewrite(intruder(nil), meter.Options{}); err == nil || !strings.Contains(err.Error(), "RefillModule") {
		t.Errorf("without options: %v", err)
	}
}
