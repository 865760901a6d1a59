package host_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/log"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// TestEmptyStrings: the Extism PDKs pass an empty string as offset 0, and both engines take it for one.
func TestEmptyStrings(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		var lines logBuffer
		h := newHost(t, host.Config{Engine: hosttest.Engine(e), Logger: logger(&lines, slog.LevelDebug)})
		m, err := h.Load(t.Context(), host.Spec{Path: wat("empties"), Grants: host.Grants{Config: map[string]string{"": "nameless", "e": ""}, Capabilities: []host.Capability{log.Grant{}}}})
		if err != nil {
			t.Fatal(err)
		}
		for export, want := range map[string]int64{
			"logs": 1, "config_no_name": 8000 + 'n', "config_empty_value": -1,
			"var_no_name": 1000 + 'v', "var_no_name_removed": -1, "error_none": 2,
		} {
			out, err := m.Call(t.Context(), export, nil)
			if err != nil || len(out) != 8 || int64(binary.LittleEndian.Uint64(out)) != want { //nolint:gosec // a small number
				t.Errorf("%s: % x, %v; want %d", export, out, err, want)
			}
		}
		call(t, m, "output_none", "", "")
		_, err = m.Call(t.Context(), "error_none_refused", nil)
		if refused, ok := errors.AsType[*host.GuestError](err); !ok || refused.Code != 3 || refused.Message != "" {
			t.Errorf("error_none_refused: %v", err)
		}
		// go-sdk leaves out log_trace.
		if n := strings.Count(lines.String(), `text=""`); n != map[string]int{hosttest.Native: 5, hosttest.Extism: 4}[e] {
			t.Errorf("%d lines without a text:\n%s", n, lines.String())
		}
	})
}

// TestInputWords: a word at the end of the input holds the bytes that there are, and zeros.
func TestInputWords(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("empties")})
		for n := range 34 {
			in := bytes.Repeat([]byte("\xffb\x01d\x80"), 7)[:n]
			padded := append(bytes.Clone(in), make([]byte, 8)...)
			want := make([]byte, 16*n)
			for at := range n {
				copy(want[16*at:], padded[at:at+8])
				want[16*at+8] = in[at]
			}
			call(t, m, "words", string(in), string(want))
			if e == hosttest.Native { // go-sdk returns what lies behind, or traps
				call(t, m, "beyond", string(in), string(make([]byte, 40)))
			}
		}
	})
}
