package host_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// typedReferences is a guest that the rewriter refuses, because it calls through a typed reference.
func typedReferences() []byte {
	return wasmOf(
		sec(sType, fn(nil, enc(i32))), sec(sFunc, enc(0), enc(0)), sec(sExport, export("run", 0, 1)),
		sec(sElem, enc(3, 0, vec(enc(0)))),                 // declared, so that ref.func may name it
		sec(sCode, body(konst, 0), body(0xd2, 0, 0x14, 0))) // run: ref.func, call_ref
}

// TestUnmetered: what cannot be metered cannot be stopped, so it is refused, also as a link.
func TestUnmetered(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	const want = "uses a feature that cannot be metered: opcode 0x14 at offset 4; build it again with"
	for name, spec := range map[string]host.Spec{
		"module": {Name: "typed", Wasm: typedReferences()},
		"link":   {Name: "main", Wasm: watBytes(t, "echo"), Links: []host.Link{{Name: "typed", Wasm: typedReferences()}}},
	} {
		if _, err := h.Load(t.Context(), spec); !errors.Is(err, host.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		if info := load(t, e, host.Spec{Path: wat("echo")}).Info(); info.Metered != (e == hosttest.Native) || len(info.Notes) == 0 != info.Metered {
			t.Errorf("echo: metered %t, notes %q", info.Metered, info.Notes)
		}
	})
}
