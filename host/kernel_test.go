package host_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
)

// operations makes a list for kernel_ops: blocks of many sizes are made, checked
// and freed in a random order, and all that are left are checked at the end.
func operations(rng *rand.Rand, n int) (list []byte, blocks uint32) {
	add := func(op, arg uint32) {
		list = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(list, op), arg)
	}
	var alive []uint32
	for range n {
		switch k := rng.IntN(10); {
		case k < 5 || len(alive) == 0:
			size := rng.Uint32N(1 << (1 + rng.Uint32N(12)))
			add(0, size)
			if size > 0 {
				alive = append(alive, blocks)
			}
			blocks++
		case k < 8:
			at := rng.IntN(len(alive))
			add(1, alive[at])
			alive = append(alive[:at], alive[at+1:]...)
		default:
			add(2, alive[rng.IntN(len(alive))])
		}
	}
	for _, b := range alive {
		add(2, b)
	}
	return list, blocks
}

// TestKernel_allocator holds the allocator of both kernels to the same: blocks do
// not overlap, keep what was written, have the length that was asked for, and are
// used again after they were freed.
func TestKernel_allocator(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: wat("kernel_ops"), Limits: host.Limits{Timeout: 10 * time.Minute}})
		seeds, again := uint64(40), uint32(3000)
		if e != "native" || testing.Short() { // go-sdk's kernel takes a hundred times as long as ours
			seeds, again = 8, 400
		}
		for seed := range seeds {
			list, blocks := operations(rand.New(rand.NewPCG(seed, 7)), 600)
			out, err := m.Call(t.Context(), "run", list)
			if err != nil || len(out) != 4 || binary.LittleEndian.Uint32(out) != blocks {
				t.Errorf("seed %d: % x, %v; want %d blocks", seed, out, err, blocks)
			}
		}
		// What is freed is used again: all of this together is more than the memory.
		var list []byte
		for n := range again {
			for _, v := range []uint32{0, 60_000, 1, n} {
				list = binary.LittleEndian.AppendUint32(list, v)
			}
		}
		small := load(t, e, host.Spec{Path: wat("kernel_ops"), Limits: host.Limits{MemoryPages: 32, Timeout: 10 * time.Minute}})
		if _, err := small.Call(t.Context(), "run", list); err != nil {
			t.Errorf("freed blocks are not used again: %v", err)
		}
		// So is what the host takes: the guest does not free names and values.
		vars := load(t, e, host.Spec{Path: wat("variables"), Limits: host.Limits{MemoryPages: 32, Timeout: 10 * time.Minute}})
		call(t, vars, "many", "", "")
		// A block that does not fit is refused with an offset of zero, and no trap of
		// the kernel's own.
		_, err := small.Call(t.Context(), "run", []byte{0, 0, 0, 0, 0, 0, 0, 0x7f})
		_ = wantTrap(t, err, host.TrapFault)
	})
}
