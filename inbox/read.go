package inbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// Recv takes the oldest notice. It waits until there is one, ctx is done, or the
// box is closed ([ErrClosed]).
func (b *Box) Recv(ctx context.Context) (abi.Notice, error) {
	for {
		n, arrived, err := b.take(true)
		if err != nil || arrived == nil {
			return n, err
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return abi.Notice{}, fmt.Errorf("inbox: receive: %w", context.Cause(ctx))
		}
	}
}

// TryRecv takes the oldest notice, if there is one.
func (b *Box) TryRecv() (abi.Notice, bool) {
	n, _, err := b.take(false)
	return n, err == nil
}

// take returns the oldest notice, or the channel to wait on.
func (b *Box) take(wait bool) (n abi.Notice, arrived <-chan struct{}, err error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if b.at == len(b.out) {
		if arrived, err = b.turn(wait); arrived != nil || err != nil {
			return n, arrived, err
		}
	}
	n = b.out[b.at]
	b.out[b.at] = abi.Notice{} // lets go of the payload
	b.at++
	b.read++
	if b.at%b.lot == 0 || b.at == len(b.out) {
		b.left.Store(int64(len(b.out) - b.at))
		if b.anybody.Load() {
			b.lock()
			b.madeRoom()
			b.mu.Unlock()
		}
	}
	return n, nil, nil
}

// turn lets the lists change places, or returns the channel to wait on. The caller
// is the reader.
func (b *Box) turn(wait bool) (arrived <-chan struct{}, err error) {
	b.lock()
	defer b.mu.Unlock()
	switch {
	case len(b.in) > 0:
		b.in, b.out, b.at = b.out[:0], b.in, 0
		b.left.Store(int64(len(b.out)))
		return nil, nil
	case b.closed || !wait:
		return nil, ErrClosed
	case b.arrived == nil:
		b.arrived = make(chan struct{})
	}
	return b.arrived, nil
}

// Drain takes everything that is queued, oldest first, and does not wait. What
// senders hold that wait for room is queued next, for the next call.
func (b *Box) Drain() []abi.Notice { return b.DrainTo(nil) }

// DrainTo is [Box.Drain] that appends to a slice, so that a reader can use the same
// one again.
func (b *Box) DrainTo(to []abi.Notice) []abi.Notice {
	b.reading.Lock()
	defer b.reading.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(to)
	to = b.empty(to)
	b.read += uint64(len(to) - before)
	b.madeRoom()
	return to
}

// empty moves what is unread to a slice. The caller holds both locks.
func (b *Box) empty(to []abi.Notice) []abi.Notice {
	rest := b.out[b.at:]
	to = append(slices.Grow(to, len(rest)+len(b.in)), rest...)
	to = append(to, b.in...)
	clear(rest)
	clear(b.in)
	b.in, b.out, b.at = b.in[:0], b.out[:0], 0
	b.left.Store(0)
	return to
}
