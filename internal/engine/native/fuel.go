package native

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"github.com/mortise-dev/mortise/internal/engine"
)

// fuelSlice is how much fuel an instance gets at a time. Between two slices the
// guest is outside of native code. A slice of ordinary code takes 1 to 4 us, one
// that fills memory which was never touched some 1 ms.
const fuelSlice = 1 << 15

// counter is where a module counts down. What is in it was granted and is not used.
type counter struct {
	api.MutableGlobal

	module  api.Module
	granted int64
	// last is what was left when a call had ended.
	last int64
}

// left is what the module may still use before it asks again.
func (c *counter) left() int64 { return int64(c.Get()) } // the counter is an i64

func (c *counter) put(left int64) { c.Set(uint64(left)) } // negative in a guest's debt only

func (c *counter) used() int64 { return c.granted - c.left() }

// bindCounter finds the counter that the rewriter exported.
func (i *nativeInstance) bindCounter(m api.Module, export string) error {
	global, ok := m.ExportedGlobal(export).(api.MutableGlobal)
	if !ok {
		return fmt.Errorf("%w: the meter's counter is not there", engine.ErrEngine)
	}
	i.counter = &counter{MutableGlobal: global, module: m}
	i.counters = append(i.counters, i.counter)
	return nil
}

// grant starts a call: the first slice goes to the main module, and the others ask.
// What the call before left of its own slice is one if it is large enough: to set
// a counter takes time.
func (i *nativeInstance) grant() {
	if c := i.counter; len(i.counters) == 1 && c.last >= fuelSlice/2 && c.last <= i.limit {
		c.granted, c.last = c.last, 0
		return
	}
	for _, c := range i.counters {
		c.granted = 0
		c.put(0)
	}
	i.counter.granted = min(fuelSlice, i.limit)
	i.counter.put(i.counter.granted)
}

// total is the fuel that a call has used, which has ended.
func (i *nativeInstance) total() int64 {
	if len(i.counters) == 1 {
		i.counter.last = i.counter.left()
		return i.counter.granted - i.counter.last
	}
	return i.used()
}

// used is the fuel that the call has used so far.
func (i *nativeInstance) used() int64 {
	n := int64(0)
	for _, c := range i.counters {
		n += c.used()
	}
	return n
}

// refill is called by a module when its slice is used up.
func refill(ctx context.Context, m api.Module, _ []uint64) {
	i := nativeCaller(ctx)
	i.refill(m)
	i.called = ""
}

// refill gives a module the next slice. It ends the guest when the call must not
// continue.
func (i *nativeInstance) refill(m api.Module) {
	used := i.used()
	i.Leave()
	if used > i.limit {
		i.Fail(i.outOfFuel())
	}
	i.next(i.counterOf(m), i.limit-used)
}

func (i *nativeInstance) outOfFuel() *engine.Fault {
	return &engine.Fault{Kind: engine.TrapFuel, Detail: fmt.Sprintf("used up its %d units of fuel", i.limit)}
}

// next hands out the next slice of what remains to a counter. What its last charge
// took beyond the slice has been counted. What other modules hold is theirs until
// there is nothing else.
func (i *nativeInstance) next(c *counter, remains int64) {
	free := remains
	for _, other := range i.counters {
		if other != c {
			free -= other.left()
		}
	}
	if free <= 0 {
		for _, other := range i.counters {
			if other != c {
				other.granted = other.used()
				other.put(0)
			}
		}
		free = remains
	}
	next := min(fuelSlice, free)
	c.granted = c.used() + next
	c.put(next)
}

// counterOf is the counter of the module that asks, or the one that pays for the
// host's work.
func (i *nativeInstance) counterOf(m api.Module) *counter {
	n := slices.IndexFunc(i.counters, func(c *counter) bool { return c.module == m })
	if n < 0 {
		return i.counter
	}
	return i.counters[n]
}

// Spend takes units of fuel for work that the host does for the guest, and ends
// the guest when it must not continue. Without it a guest could stay in the host
// for as long as it likes: a slice is enough for a hundred thousand calls.
func (i *nativeInstance) Spend(units int) {
	if i.counter == nil { // an instance is being made
		return
	}
	left := i.counter.left() - int64(units)
	i.counter.put(left)
	if left < 0 {
		i.refill(nil)
	}
}

// spendBytes takes what a range instruction costs for as many bytes.
func (i *nativeInstance) spendBytes(n int) { i.Spend(n/64 + 1) }

// meteredWriter takes fuel for what a guest writes.
type meteredWriter struct {
	i *nativeInstance
	w io.Writer
}

// Write implements io.Writer.
func (m meteredWriter) Write(b []byte) (int, error) {
	m.i.spendBytes(len(b))
	return m.w.Write(b)
}
