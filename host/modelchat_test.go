package host_test

import (
	"errors"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/model"
	"github.com/mortise-dev/mortise/internal/engine"
)

// TestRole_longHead: JSON that is longer than any question may be is refused before a library reads it.
func TestRole_longHead(t *testing.T) {
	t.Parallel()
	const i64 = 0x7e
	asks := func(head int) []byte { // the code of model_chat with blocks of so many bytes and of one byte
		return wasmOf(sec(sType, fn(nil, enc(i32)), fn(enc(i64), enc(i64)), fn(enc(i64, i64), enc(i64))),
			sec(sImport, enc(sized("extism:host/env"), sized("alloc"), 0, 1), enc(sized("mortise:host/1"), sized("model_chat"), 0, 2)),
			sec(sFunc, enc(0)), sec(sExport, export("run", 0, 2)),
			sec(sCode, body(0x42, head&0x7f|0x80, head>>7|0x80, 0, 0x10, 0, 0x42, 1, 0x10, 0, 0x10, 1, 0xa7)))
	}
	for head, want := range map[int]engine.ErrorCode{13_024: engine.CodeDenied, 13_025: engine.CodeTooLarge} { // no role is named
		onEngines(t, func(t *testing.T, e string) {
			t.Helper()
			m := load(t, e, host.Spec{Name: "asks", Wasm: asks(head), Grants: host.Grants{Capabilities: []host.Capability{&model.Grant{
				RequestBytes: 2_000, Roles: map[string]model.Role{"small": {Answer: echo, WindowTokens: 400}},
			}}}})
			_, err := m.Call(t.Context(), "run", nil)
			if said := (*host.GuestError)(nil); !errors.As(err, &said) || engine.ErrorCode(int32(said.Code)) != want { //nolint:gosec // an i32
				t.Errorf("%d bytes: %v, want %v", head, err, want)
			}
		})
	}
}
