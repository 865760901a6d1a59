package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/messages"
)

func TestWithRange(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("range"), Limits: host.Limits{InputBytes: 64}, Grants: reads()})
		call(t, m, "run", "", "") // nobody offers anything
		ask := func(f messages.RangeFunc) (string, error) {
			out, err := m.Call(messages.WithRange(t.Context(), f), "run", nil)
			return string(out), err
		}
		if out, err := ask(func(from, to uint32) ([]byte, error) { return fmt.Appendf(nil, "%d..%d", from, to), nil }); err != nil || out != "1..3" {
			t.Errorf("got %q, %v", out, err)
		}
		if out, err := ask(func(uint32, uint32) ([]byte, error) { return nil, nil }); err != nil || out != "" {
			t.Errorf("got %q, %v", out, err)
		}
		gone := errors.New("gone\nfor good")
		_, err := ask(func(uint32, uint32) ([]byte, error) { return nil, gone })
		trap := wantTrap(t, err, host.TrapFault)
		if !errors.Is(err, gone) || !strings.Contains(trap.Detail, `messages_get: gone\nfor good`) {
			t.Errorf("error %v", err)
		}
		asked := 0
		_, err = ask(func(uint32, uint32) ([]byte, error) { asked++; return nil, fmt.Errorf("%w: %w", host.ErrRetired, gone) })
		if _ = wantTrap(t, err, host.TrapFault); asked != 1 || !errors.Is(err, gone) || errors.Is(err, host.ErrRetired) {
			t.Errorf("asked %d times, %v", asked, err)
		}
		_, err = ask(func(uint32, uint32) ([]byte, error) { return make([]byte, 65), nil })
		if trap := wantTrap(t, err, host.TrapFault); !strings.Contains(trap.Detail, "65 bytes, 64 are allowed") {
			t.Errorf("error %v", err)
		}
		call(t, m, "run", "", "")
	})
}

func Example_messages() {
	ctx := context.Background()
	h, err := host.New(host.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)
	m, err := h.Load(ctx, host.Spec{Path: "testdata/range.wasm", Grants: reads()})
	if err != nil {
		fmt.Println(err)
		return
	}
	log := "abcdef"
	ctx = messages.WithRange(ctx, func(from, to uint32) ([]byte, error) { return []byte(log[from:to]), nil })
	out, err := m.Call(ctx, "run", nil)
	fmt.Println(string(out), err)
	// Output: bc <nil>
}
