package host_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
)

// TestModule_Call_parts: a guest sees parts as one input, whether it reads in bulk or word
// by word, and nothing of them stays behind.
func TestModule_Call_parts(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		for _, name := range []string{"echo", "echo_pdk"} {
			m := load(t, e, host.Spec{Path: wat(name)})
			for _, parts := range [][][]byte{
				nil,
				{nil},
				{[]byte("one")},
				{nil, []byte("one, "), {}, []byte("two, "), []byte("three"), nil},
				{bytes.Repeat([]byte("a"), 5000), bytes.Repeat([]byte("b"), 70_000), []byte("c")},
				{[]byte("short")},
			} {
				out, err := m.Call(t.Context(), "echo", parts...)
				if want := bytes.Join(parts, nil); err != nil || !bytes.Equal(out, want) {
					t.Errorf("%s: %d bytes of %d, error %v", name, len(out), len(want), err)
				}
			}
			if out, err := m.Call(t.Context(), "echo", []byte("whole")); err != nil || string(out) != "whole" {
				t.Errorf("%s: %q, error %v", name, out, err)
			}
		}
	})
}

// TestModule_Call_parts_refused: what is said of an input holds for the sum of its parts.
func TestModule_Call_parts_refused(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("echo"), Limits: host.Limits{InputBytes: 10}})
		six := []byte("abcdef")
		if _, err := m.Call(t.Context(), "echo", six, six); !errors.Is(err, host.ErrInputTooLarge) || !strings.Contains(err.Error(), "12 bytes of 10") {
			t.Errorf("error %v, want ErrInputTooLarge of 12 bytes", err)
		}
		if _, err := m.Call(t.Context(), "missing"); !errors.Is(err, host.ErrNoExport) {
			t.Errorf("error %v, want ErrNoExport", err)
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.Call(done, "echo"); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want the context's", err)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Call(t.Context(), "echo"); !errors.Is(err, host.ErrClosed) {
			t.Errorf("error %v, want ErrClosed", err)
		}
	})
}
