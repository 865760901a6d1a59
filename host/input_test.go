package host_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/messages"
	"github.com/mortise-dev/mortise/host/hosttest"
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

// reads grants messages.
func reads() host.Grants {
	return host.Grants{Capabilities: []host.Capability{messages.Grant{}}}
}

// reading is an input of items.wat.
func reading(numbers ...uint32) [][]byte {
	var b []byte
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return [][]byte{b}
}

func TestModule_Call_items(t *testing.T) {
	t.Parallel()
	items := texts{"zero ", "one ", "", "three"}
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("items"), Grants: reads()})
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
			size, _ := items.Size(tc.from, tc.to)
			out, err := m.Call(messages.With(t.Context(), items), "read", reading(tc.from, tc.to, tc.ptr, uint32(size), tc.out, tc.n)...)
			if err != nil || string(out) != tc.want {
				t.Errorf("%d to %d: %q, %v; want %q", tc.from, tc.to, out, err, tc.want)
			}
		}
		// Items over the numbers that describe what to pass on: the guest's own doing.
		over := texts{string(reading(16, 8)[0])}
		out, err := m.Call(messages.With(t.Context(), over), "read", reading(0, 1, 16, 8, 0, 0)...)
		if err != nil || string(out) != over[0] {
			t.Errorf("%q, %v", out, err)
		}
		if out, err := m.Call(t.Context(), "before", nil); err != nil || e == hosttest.Native && !bytes.Equal(out, make([]byte, 4096)) {
			t.Errorf("a later call found %q, %v", bytes.Trim(out, "\x00"), err)
		}
	})
}

// TestModule_Call_items_hostile: ranges that are not there, memory that is not there, and
// calls without items.
func TestModule_Call_items_hostile(t *testing.T) {
	t.Parallel()
	const all = math.MaxUint32
	items := texts{"zero", "one"}
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("items"), Grants: reads()})
		// What is not there is not read, and the guest gets an error.
		for _, tc := range []struct {
			items              messages.Items
			from, to, ptr, len uint32
			want               int64
		}{
			{items, 0, 3, 64, 7, -1},
			{items, 2, 1, 64, 0, -1},
			{items, all, all, 64, 0, -1},
			{items, 1, all, 64, all, -1},
			{items, 0, 2, 64, 6, 7}, // no room
			{items, 0, 2, all, 6, 7},
			{items, 0, 2, 64, 0, 7},
			{items, 2, 2, 64, 0, 0},
			{nil, 0, 0, 64, 0, -1},
			{negative{}, 0, 2, 64, all, -1},
			{texts{}, 0, 1, 64, 1, -1},
			{texts{}, 0, 0, 64, 1, 0},
			{texts{strings.Repeat("x", 70_000)}, 0, 1, 0, 69_999, 70_000},
		} {
			ctx := messages.With(t.Context(), tc.items)
			out, err := m.Call(ctx, "read", reading(tc.from, tc.to, tc.ptr, tc.len, 24, 48)...)
			if err != nil || int64(binary.LittleEndian.Uint64(out)) != tc.want || e == hosttest.Native && !bytes.Equal(out[8:], make([]byte, 40)) {
				t.Errorf("messages %d to %d: %q, %v; want %d", tc.from, tc.to, out, err, tc.want)
			}
		}
		for says, tc := range map[string]struct {
			items              messages.Items
			from, to, ptr, len uint32
		}{
			"7 bytes at 65530 are outside the memory of 65536 bytes": {items, 0, 2, 65530, 7},
			"7 bytes at 4294967295 are outside":                      {items, 0, 2, all, all},
			"0 bytes at 65537 are outside":                           {items, 0, 0, 65537, 0},
			"70000 bytes at 0 are outside the memory of 65536 bytes": {texts{strings.Repeat("x", 70_000)}, 0, 1, 0, all},
		} {
			_, err := m.Call(messages.With(t.Context(), tc.items), "read", reading(tc.from, tc.to, tc.ptr, tc.len, 0, 0)...)
			if trap := wantTrap(t, err, host.TrapFault); !strings.Contains(trap.Detail, "messages_read: ") || !strings.Contains(trap.Detail, says) {
				t.Errorf("%s, want %q", trap.Detail, says)
			}
		}
		// Those of one call are not there in the next, and none are before the first.
		if out, err := m.Call(t.Context(), "read", reading(0, 1, 64, 4, 24, 8)[0]); err != nil || int64(binary.LittleEndian.Uint64(out)) != -1 {
			t.Errorf("%q, %v", out, err)
		}
		load(t, e, host.Spec{Path: wat("items_initialize"), Grants: reads()})
	})
}

type negative struct{ texts }

func (negative) Size(uint32, uint32) (int, bool) { return -1, true }

// TestModule_Call_items_fuel: each reading takes fuel, and more bytes take more.
func TestModule_Call_items_fuel(t *testing.T) {
	t.Parallel()
	m := load(t, hosttest.Native, host.Spec{Path: wat("items"), Limits: host.Limits{Fuel: 200_000}, Grants: reads()})
	used := func(text string) int64 {
		before := m.Stats().Fuel
		if _, err := m.Call(messages.With(t.Context(), texts{text}), "read", reading(0, 1, 64, uint32(len(text)), 0, 0)...); err != nil {
			t.Fatal(err)
		}
		return m.Stats().Fuel - before
	}
	if little, much := used(""), used(strings.Repeat("x", 64_000)); much != little+1000 {
		t.Errorf("fuel %d for nothing, %d for 64,000 bytes", little, much)
	}
	_, err := m.Call(messages.With(t.Context(), texts{strings.Repeat("x", 64_000)}), "forever")
	if trap := wantTrap(t, err, host.TrapFuel); !strings.Contains(trap.Detail, "200000 units") {
		t.Errorf("trap %v", trap)
	}
}

// TestSession_Call_items: a session keeps its memory, and reads the items of each call.
func TestSession_Call_items(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("items"), Grants: host.Grants{Sticky: true, Capabilities: reads().Capabilities}})
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(context.WithoutCancel(t.Context()))
		for n := range uint32(3) {
			text := fmt.Sprint("item ", n)
			out, err := s.Call(messages.With(t.Context(), texts{text}), "read", reading(0, 1, 64+8*n, uint32(len(text)), 64, 8+8*n)...)
			if err != nil || !strings.Contains(string(out), "item 0") || !strings.Contains(string(out), text) {
				t.Errorf("%q, %v", out, err)
			}
		}
		out, err := s.Call(t.Context(), "read", reading(0, 1, 64, 1, 24, 8)[0])
		if err != nil || int64(binary.LittleEndian.Uint64(out)) != -1 {
			t.Errorf("%q, %v", out, err)
		}
	})
}

func Example_items() {
	ctx := context.Background()
	h, err := host.New(host.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)
	m, err := h.Load(ctx, host.Spec{Path: "testdata/items.wasm", Grants: reads()})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The guest reads item 1 and passes it on; item 0 stays where it is.
	out, err := m.Call(messages.With(ctx, texts{"zero", "one"}), "read", reading(1, 2, 64, 3, 64, 3)...)
	fmt.Println(string(out), err)
	// Output: one <nil>
}
