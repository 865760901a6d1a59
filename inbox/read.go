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

// RecvAll waits as [Box.Recv] does, and takes all that is queued then, oldest first; of a
// box from which Recv took some before, what is left of the same lot. It copies
// nothing: what comes back is the memory of the box, which keeps that of to instead. So
// to and all that it shared memory with must not be used again; nil is as good. When an
// error comes back, to is still the caller's.
func (b *Box) RecvAll(ctx context.Context, to []abi.Notice) ([]abi.Notice, error) {
	clear(to) // lets go of the payloads
	for {
		all, arrived, err := b.takeAll(to[:0])
		if err != nil || arrived == nil {
			return all, err
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, fmt.Errorf("inbox: receive: %w", context.Cause(ctx))
		}
	}
}

// takeAll puts an empty list in the place of one that is not, or returns the channel to
// wait on.
func (b *Box) takeAll(empty []abi.Notice) (all []abi.Notice, arrived <-chan struct{}, err error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	b.lock()
	defer b.mu.Unlock()
	switch {
	case b.at < len(b.out):
		all, b.out, b.at = b.out[b.at:], empty, 0
		b.left.Store(0)
	case len(b.in) > 0:
		all, b.in = b.in, empty
	default:
		arrived, err = b.await()
		return nil, arrived, err
	}
	b.read += uint64(len(all))
	b.madeRoom()
	return all, nil, nil
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
	case !wait:
		return nil, ErrClosed
	}
	return b.await()
}

// await returns the channel on which to wait for a notice. The caller holds both locks,
// and there is none.
func (b *Box) await() (arrived <-chan struct{}, err error) {
	switch {
	case b.closed:
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
	b.lock()
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
