package host_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
)

// texts are items.
type texts []string

func (x texts) Size(from, to uint32) (int, bool) {
	if from > to || uint64(to) > uint64(len(x)) {
		return 0, false
	}
	return len(strings.Join(x[from:to], "")), true
}

func (x texts) Copy(dst []byte, from, to uint32) { copy(dst, strings.Join(x[from:to], "")) }

// reading is an input of items.wat.
func reading(numbers ...uint32) [][]byte {
	var b []byte
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return [][]byte{b}
}

func TestModule_CallInput(t *testing.T) {
	t.Parallel()
	items := texts{"zero ", "one ", "", "three"}
	onEngines(t, func(t *testing.T, e host.EngineName) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("items")})
		for _, tc := range []struct {
			from, to, ptr, out, n uint32
			want                  string
		}{
			{0, 4, 64, 64, 14, "zero one three"},
			{1, 2, 128, 128, 6, "one \x00\x00"}, // nothing is behind it
			{3, 4, 65531, 65531, 5, "three"},    // the end of memory
			{2, 3, 256, 256, 1, "\x00"},         // an item without bytes
			{4, 4, 65536, 0, 0, ""},             // none at all, at the end of memory
		} {
			out, err := m.CallInput(t.Context(), "read", host.Input{Parts: reading(tc.from, tc.to, tc.ptr, tc.out, tc.n), Items: items})
			if err != nil || string(out) != tc.want {
				t.Errorf("%d to %d: %q, %v; want %q", tc.from, tc.to, out, err, tc.want)
			}
		}
		// Items over the numbers that say what to pass on: the guest's own doing.
		over := texts{string(reading(12, 8)[0])}
		out, err := m.CallInput(t.Context(), "read", host.Input{Parts: reading(0, 1, 12, 0, 0), Items: over})
		if err != nil || string(out) != over[0] {
			t.Errorf("%q, %v", out, err)
		}
		if out, err := m.Call(t.Context(), "before", nil); err != nil || e == host.EngineNative && !bytes.Equal(out, make([]byte, 4096)) {
			t.Errorf("a later call found %q, %v", bytes.Trim(out, "\x00"), err)
		}
	})
}

// TestModule_CallInput_hostile: ranges that are not there, memory that is not there, and
// calls without items end the guest, and nothing else.
func TestModule_CallInput_hostile(t *testing.T) {
	t.Parallel()
	const all = math.MaxUint32
	items := texts{"zero", "one"}
	onEngines(t, func(t *testing.T, e host.EngineName) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("items")})
		for says, tc := range map[string]struct {
			items         host.Items
			from, to, ptr uint32
		}{
			"messages 0 to 3 are not all there":                      {items, 0, 3, 64},
			"messages 2 to 1 are not all there":                      {items, 2, 1, 64},
			"messages 4294967295 to 4294967295 are not all there":    {items, all, all, 64},
			"messages 1 to 4294967295 are not all there":             {items, 1, all, 64},
			"7 bytes at 65530 are outside the memory of 65536 bytes": {items, 0, 2, 65530},
			"7 bytes at 4294967295 are outside":                      {items, 0, 2, all},
			"0 bytes at 65537 are outside":                           {items, 0, 0, 65537},
			"the call has no messages to read":                       {nil, 0, 0, 64},
			"messages 0 to 2 are not all there":                      {negative{}, 0, 2, 64},
			"messages 0 to 1 are not all there":                      {texts{}, 0, 1, 64},
			"70000 bytes at 0 are outside the memory of 65536 bytes": {texts{strings.Repeat("x", 70_000)}, 0, 1, 0},
		} {
			_, err := m.CallInput(t.Context(), "read", host.Input{Parts: reading(tc.from, tc.to, tc.ptr, 0, 0), Items: tc.items})
			if trap := wantTrap(t, err, host.TrapFault); !strings.Contains(trap.Detail, "messages_read: ") || !strings.Contains(trap.Detail, says) {
				t.Errorf("%s, want %q", trap.Detail, says)
			}
		}
		// Those of one call are not there in the next.
		if _, err := m.Call(t.Context(), "read", reading(0, 1, 64, 0, 0)[0]); err == nil || !strings.Contains(err.Error(), "no messages to read") {
			t.Errorf("error %v", err)
		}
		early := newHost(t, host.Config{Engine: e})
		if _, err := early.Load(t.Context(), host.Spec{Path: wat("items_initialize")}); err == nil {
			t.Error("a guest read messages before there was a call")
		}
	})
}

type negative struct{ texts }

func (negative) Size(uint32, uint32) (int, bool) { return -1, true }

// TestModule_CallInput_fuel: each reading takes fuel, and more bytes take more.
func TestModule_CallInput_fuel(t *testing.T) {
	t.Parallel()
	m := load(t, host.EngineNative, host.Spec{Path: wat("items"), Limits: host.Limits{Fuel: 200_000}})
	used := func(text string) int64 {
		before := m.Stats().Fuel
		if _, err := m.CallInput(t.Context(), "read", host.Input{Parts: reading(0, 1, 64, 0, 0), Items: texts{text}}); err != nil {
			t.Fatal(err)
		}
		return m.Stats().Fuel - before
	}
	if little, much := used(""), used(strings.Repeat("x", 64_000)); much != little+1000 {
		t.Errorf("fuel %d for nothing, %d for 64,000 bytes", little, much)
	}
	_, err := m.CallInput(t.Context(), "forever", host.Input{Items: texts{strings.Repeat("x", 64_000)}})
	if trap := wantTrap(t, err, host.TrapFuel); !strings.Contains(trap.Detail, "200000 units") {
		t.Errorf("trap %v", trap)
	}
}

// TestSession_CallInput: a session keeps its memory, and reads the items of each call.
func TestSession_CallInput(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e host.EngineName) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("items"), Grants: host.Grants{Sticky: true}})
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(context.WithoutCancel(t.Context()))
		for n := range uint32(3) {
			text := fmt.Sprint("item ", n)
			out, err := s.CallInput(t.Context(), "read", host.Input{Parts: reading(0, 1, 64+8*n, 64, 8+8*n), Items: texts{text}})
			if err != nil || !strings.Contains(string(out), "item 0") || !strings.Contains(string(out), text) {
				t.Errorf("%q, %v", out, err)
			}
		}
		if _, err := s.Call(t.Context(), "read", reading(0, 1, 64, 0, 0)[0]); err == nil || !strings.Contains(err.Error(), "no messages to read") {
			t.Errorf("error %v", err)
		}
		if _, err := s.CallInput(t.Context(), "before", host.Input{}); !errors.Is(err, host.ErrSessionLost) {
			t.Errorf("error %v", err)
		}
	})
}

func ExampleModule_CallInput() {
	ctx := context.Background()
	h, err := host.New(host.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)
	m, err := h.Load(ctx, host.Spec{Path: "testdata/items.wasm"})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The guest reads item 1 and passes it on; item 0 stays where it is.
	out, err := m.CallInput(ctx, "read", host.Input{Parts: reading(1, 2, 64, 64, 3), Items: texts{"zero", "one"}})
	fmt.Println(string(out), err)
	// Output: one <nil>
}
