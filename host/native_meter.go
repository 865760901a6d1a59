package host

import (
	"context"
	"fmt"
	"io"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// maxSubscriptions is how many a guest may poll at once. A call with a million of
// them takes the engine tens of milliseconds, in which it cannot be stopped.
const maxSubscriptions = 4096

// hostChunk is how many bytes the host works on between two charges.
const hostChunk = 1 << 16

// spend takes units of fuel for work that the host does for the guest, and ends
// the guest when it must not go on. Without it a guest could stay in the host
// for as long as it likes: a slice is enough for a hundred thousand calls.
func (i *nativeInstance) spend(units int) {
	if i.counter == nil { // not metered, or on the way
		if f := i.ended(); f != nil {
			i.fail(f)
		}
		return
	}
	i.debt += int64(units)
	if i.debt > i.credit && i.pay() < 0 {
		i.refill(nil, nil)
	}
}

// pay takes the debt from the counter, and returns what is left in it.
func (i *nativeInstance) pay() int64 {
	left := i.counter.left() - i.debt
	i.counter.put(left)
	i.debt = 0
	return left
}

// spendBytes takes what a range instruction costs for as many bytes.
func (i *nativeInstance) spendBytes(n int) { i.spend(n/64 + 1) }

// meteredReader and meteredWriter take fuel for what a guest reads and writes.
type meteredReader struct {
	i *nativeInstance
	r io.Reader
}

// Read implements io.Reader. It reads at most a chunk. A random byte takes four
// times as long as one that is copied.
func (m meteredReader) Read(b []byte) (int, error) {
	b = b[:min(len(b), hostChunk)]
	m.i.spendBytes(4 * len(b))
	return m.r.Read(b)
}

type meteredWriter struct {
	i *nativeInstance
	w io.Writer
}

// Write implements io.Writer.
func (m meteredWriter) Write(b []byte) (int, error) {
	m.i.spendBytes(len(b))
	return m.w.Write(b)
}

// listMeter takes fuel for WASI calls that walk over a list.
type listMeter struct {
	// size of an entry in bytes: memory bounds how many there can be.
	size int
	// param is the index of the parameter that holds the number of entries.
	param int
	// cost of an entry in units.
	cost int
	// most is how many there may be, if they are bounded.
	most int
}

// Before implements experimental.FunctionListener.
func (l listMeter) Before(ctx context.Context, _ api.Module, def api.FunctionDefinition, params []uint64, _ experimental.StackIterator) {
	i := nativeCaller(ctx)
	i.touched, i.windows.wild = true, true
	n := min(uint64(api.DecodeU32(params[l.param])), uint64(i.memoryBound()/l.size)) // not negative
	if l.most > 0 && n > uint64(l.most) {                                            // not negative
		i.fail(&fault{kind: TrapFault, detail: fmt.Sprintf("%s: %d entries, and %d are allowed", def.Name(), n, l.most)})
	}
	i.spend(l.cost * int(n))
}

// After implements experimental.FunctionListener.
func (listMeter) After(context.Context, api.Module, api.FunctionDefinition, []uint64) {}

// Abort implements experimental.FunctionListener.
func (listMeter) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}

// noMeter is for the WASI calls that take the same time whatever the guest says:
// the engine wants a listener for all functions of a module, or for none.
type noMeter struct{ listMeter }

// Before implements experimental.FunctionListener.
func (noMeter) Before(ctx context.Context, _ api.Module, _ api.FunctionDefinition, _ []uint64, _ experimental.StackIterator) {
	i := nativeCaller(ctx)
	i.touched, i.windows.wild = true, true
}

// fileMark notes that a guest closed or moved a descriptor. WASI keeps that for the
// instance, so the instance must not be used again.
type fileMark struct{ listMeter }

// Before implements experimental.FunctionListener.
func (fileMark) Before(ctx context.Context, _ api.Module, _ api.FunctionDefinition, _ []uint64, _ experimental.StackIterator) {
	i := nativeCaller(ctx)
	i.touched, i.windows.wild, i.files = true, true, true
}

// meterWASI makes the WASI module that is made with the context take fuel.
func meterWASI(ctx context.Context) context.Context {
	return experimental.WithFunctionListenerFactory(ctx, experimental.FunctionListenerFactoryFunc(
		func(def api.FunctionDefinition) experimental.FunctionListener {
			switch def.Name() {
			case "fd_read", "fd_write", "fd_pread", "fd_pwrite":
				return listMeter{size: 8, param: 2, cost: 1}
			case "fd_close", "fd_renumber":
				return fileMark{}
			case "poll_oneoff":
				return listMeter{size: 48, param: 2, cost: 4, most: maxSubscriptions}
			}
			return noMeter{}
		}))
}
