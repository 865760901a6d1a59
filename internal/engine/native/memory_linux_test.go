package native_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/mortise-dev/mortise/internal/engine/native"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// addresses is an input for scatter of pages.wat.
func addresses(rng *rand.Rand, n int) []byte {
	out := make([]byte, 0, 4*n)
	for range n {
		out = binary.LittleEndian.AppendUint32(out, rng.Uint32N(8<<20))
	}
	return out
}

// TestNative_shrinks has one call change many pages, and many calls few: the
// memory lets go of what is no longer used.
func TestNative_shrinks(t *testing.T) {
	t.Parallel()
	i := instance(t, "pages", native.MemoryMapped, 1024)
	if native.OwnBytes(i) < 0 {
		testskip.Skip(t, "this system does not tell which pages are a process's own")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ writes, calls, min, max int }{
		{3, 1, 4096, 64 << 10},
		{500, 1, 1 << 20, 4 << 20},
		{3, 200, 4096, 256 << 10}, // dropped at the sixty-fourth
		{1900, 1, 0, 0},           // too many: dropped at once
	} {
		for range c.calls {
			run(t, i, "scatter", addresses(rng, c.writes))
		}
		got := native.OwnBytes(i)
		if got < c.min || got > c.max {
			t.Errorf("%s: %d bytes, want %d to %d", fmt.Sprint(c), got, c.min, c.max)
		}
	}
}

// TestNative_faultsAreTold fails in CI where the fast way of fresh state is off, so
// that it is not off unseen.
func TestNative_faultsAreTold(t *testing.T) {
	t.Parallel()
	if !native.FaultsCounted() {
		if os.Getenv("CI") != "" {
			t.Fatal("this kernel does not tell which pages a process has changed: CI would test the slow way alone")
		}
		testskip.Skip(t, "this kernel does not tell which pages a process has changed, so pages are dropped after each call")
	}
	i := instance(t, "dirty", native.MemoryMapped, 1024)
	for range 5 {
		run(t, i, "touch", nil)
	}
	if n := native.OwnBytes(i); n < 4096 || n > 64<<10 {
		t.Errorf("the memory keeps %d bytes of its own", n)
	}
}

// TestNative_growGivenBack: an idle instance keeps little of what a call has added and filled.
func TestNative_growGivenBack(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]native.MemoryKind{"native": native.MemoryMapped, "blind": native.MemoryBlind} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := instance(t, "grows", kind, 2000)
			grow := func(pages, end, start uint32) string {
				in := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, pages), end)
				return fmt.Sprintf("% x", run(t, i, "grow", binary.LittleEndian.AppendUint32(in, start)))
			}
			want := grow(1, 9, 9)
			if native.ResidentBytes(i) < 0 {
				testskip.Skip(t, "this system does not tell which pages are a process's own")
			}
			for range 3 {
				if got := grow(700, 600<<16, 9); got[:47] != want[:47] {
					t.Errorf("%s, want %s", got, want)
				}
				if n := native.ResidentBytes(i); n > 4<<20 {
					t.Errorf("the idle instance keeps %d bytes", n)
				}
			}
		})
	}
}
