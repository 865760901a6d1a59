package host_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/wasm"
)

// stripped is a binary without its name section.
func stripped(t *testing.T, bin []byte) []byte {
	t.Helper()
	m, err := wasm.Parse(bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range slices.Backward(m.Sections) {
		if s.ID == sCustom && s.Name == "name" {
			bin = slices.Concat(bin[:s.Start], bin[s.Offset+len(s.Body):])
		}
	}
	return bin
}

// TestTrap_frames compares what the engines say of the same trap: frames have the names and
// the numbers of the guest's own binary, and nothing of what the native engine adds.
func TestTrap_frames(t *testing.T) {
	t.Parallel()
	bin := watBytes(t, "frames")
	for name, bin := range map[string][]byte{"named": bin, "stripped": stripped(t, bin)} {
		modules := map[string]*host.Module{}
		for _, e := range engines() {
			modules[e] = load(t, e, host.Spec{Name: name, Wasm: bin, Limits: host.Limits{Timeout: time.Minute}})
		}
		for _, export := range modules[hosttest.Native].Info().Exports {
			if export == "ok" {
				continue
			}
			var details []string
			for _, e := range engines() {
				_, err := modules[e].Call(t.Context(), export, nil)
				details = append(details, wantTrap(t, err, host.TrapFault).Detail)
			}
			if details[0] != details[1] || !strings.Contains(details[1], " at .") {
				t.Errorf("%s, %s:\n%s\n%s", name, export, details[0], details[1])
			}
		}
	}
}

// TestTrap_frames_shown is what a guest's author gets to read.
func TestTrap_frames_shown(t *testing.T) {
	t.Parallel()
	bin := watBytes(t, "frames")
	for _, c := range []struct {
		bin    []byte
		export string
		want   string
	}{
		{bin, "table_fill", "invalid table access at .tables(i32) < .$20() i32"},
		{stripped(t, bin), "table_fill", "invalid table access at .$6(i32) < .$20() i32"},
		{bin, "fill_far", "out of bounds memory access at .fill(i32) < .$16() i32"},
		{stripped(t, bin), "deep", "unreachable at .$2() < .$9(i32) < .$9(i32) < .$9(i32)"},
	} {
		_, err := load(t, hosttest.Native, host.Spec{Name: "frames", Wasm: c.bin}).Call(t.Context(), c.export, nil)
		if got := wantTrap(t, err, host.TrapFault).Detail; got != c.want {
			t.Errorf("%s: %s, want %s", c.export, got, c.want)
		}
	}
}

// TestTrap_frames_start has the frames of a start function, which the native engine calls
// through a function of its own.
func TestTrap_frames_start(t *testing.T) {
	t.Parallel()
	bin := watBytes(t, "trap_start")
	for _, bin := range [][]byte{bin, stripped(t, bin)} {
		var details []string
		for _, e := range engines() {
			_, err := newHost(t, host.Config{Engine: hosttest.Engine(e)}).Load(t.Context(), host.Spec{Name: "start", Wasm: bin})
			trap, ok := errors.AsType[*host.TrapError](err)
			if !ok {
				t.Fatal(err)
			}
			details = append(details, trap.Detail)
		}
		if details[0] != details[1] {
			t.Errorf("\n%s\n%s", details[0], details[1])
		}
	}
}

// TestTrap_frames_kernel tells frames of the kernel, which has numbers of its own, from those
// of the guest.
func TestTrap_frames_kernel(t *testing.T) {
	t.Parallel()
	guest := wasmOf(
		sec(sType, fn(enc(i64), enc(i32)), fn(nil, enc(i32))),
		sec(sImport, enc(sized("extism:host/env"), sized("load_u8"), 0, 0)),
		sec(sFunc, leb(1)),
		sec(sExport, export("run", 0, 1)),
		sec(sCode, body(opI64Const, sleb(1<<40), opCall, 0)),
	)
	_, err := load(t, hosttest.Native, host.Spec{Name: "kernel", Wasm: guest}).Call(t.Context(), "run", nil)
	detail := wantTrap(t, err, host.TrapFault).Detail
	if !strings.HasPrefix(detail, "unreachable at extism:host/env.readable(i64,i64) i32 < extism:host/env.$") || !strings.HasSuffix(detail, " < .$1() i32") {
		t.Error(detail)
	}
}
