package native

import (
	"io"
)

// Spend takes units of fuel for work that the host does for the guest, and ends
// the guest when it must not continue. Without it a guest could stay in the host
// for as long as it likes: a slice is enough for a hundred thousand calls.
func (i *nativeInstance) Spend(units int) {
	if i.counter == nil { // on the way
		return
	}
	i.debt += int64(units)
	if i.debt > i.credit && i.pay() < 0 {
		i.refill(nil)
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
func (i *nativeInstance) spendBytes(n int) { i.Spend(n/64 + 1) }

type meteredWriter struct {
	i *nativeInstance
	w io.Writer
}

// Write implements io.Writer.
func (m meteredWriter) Write(b []byte) (int, error) {
	m.i.spendBytes(len(b))
	return m.w.Write(b)
}
