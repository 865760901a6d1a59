package inbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// Send puts a notice at the end of the queue. When the box is full it waits for
// room until ctx is done ([ErrFull]); those that wait get room in the order in which they
// came, in a deep box when there is room for several. When there is room it is taken,
// also when ctx is done. When the box is more than half full, Send lets others run, of
// whom the reader may be one. On a closed box the notice goes to the fallback and Send
// returns nil, or [ErrClosed] when there is no fallback. A notice for which an error came
// back was not accepted.
func (b *Box) Send(ctx context.Context, n abi.Notice) error {
	w, crowded, err := b.offer(ctx, &n)
	switch {
	case errors.Is(err, ErrClosed):
		return b.fallBack(n)
	case w == nil:
		if crowded {
			runtime.Gosched()
		}
		return nil
	}
	var queued bool
	select {
	case queued = <-w.decided:
	case <-ctx.Done():
		if b.giveUp(w) {
			return fmt.Errorf("%w: %w", ErrFull, context.Cause(ctx))
		}
		queued = <-w.decided // in the same moment
	}
	b.senders.Put(w)
	if queued {
		return nil
	}
	return b.fallBack(n)
}

// TrySend is Send without waiting and without the fallback: [ErrFull] when there
// is no room, [ErrClosed] when the box is closed.
func (b *Box) TrySend(ctx context.Context, n abi.Notice) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return ErrClosed
	case b.full():
		return ErrFull
	}
	b.accept(ctx, &n)
	return nil
}

// spins is how often to try for the lock before letting others run, yields how often to
// do that before parking. The lock is held for less time than parking takes; a mutex
// parks at once when many goroutines are ready to run, and each that it wakes again goes
// before the reader.
const spins, yields = 30, 10

func (b *Box) lock() {
	for range yields {
		for range spins {
			if b.mu.TryLock() {
				return
			}
		}
		runtime.Gosched()
	}
	b.mu.Lock()
}

// offer queues n, or returns what to wait on. A box that is more than half full is
// crowded.
func (b *Box) offer(ctx context.Context, n *abi.Notice) (w *sender, crowded bool, err error) {
	b.lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, false, ErrClosed
	}
	if !b.full() {
		return nil, 2*b.accept(ctx, n) > b.depth, nil
	}
	w, _ = b.senders.Get().(*sender)
	if w == nil {
		w = &sender{decided: make(chan bool, 1)}
	}
	w.n = *n
	b.waiting = append(b.waiting, w)
	b.anybody.Store(true)
	b.stats.Waiting++
	b.stats.Waited++
	// The reader may have made room since full was asked, and seen nobody who waits.
	b.madeRoom()
	b.announce()
	return w, true, nil
}

// unread is how much is unread, or up to a lot more. The caller holds mu.
func (b *Box) unread() int { return len(b.in) + int(b.left.Load()) }

func (b *Box) full() bool { return b.unread() >= b.depth }

// accept queues n. The caller holds mu and has seen that there is room.
func (b *Box) accept(ctx context.Context, n *abi.Notice) (unread int) {
	unread = b.push(n)
	b.announce()
	if unread%warnEvery == 0 {
		b.log.WarnContext(ctx, "inbox is piling up", "unread", unread, "depth", b.depth)
	}
	return unread
}

// announce wakes who waits for a notice, if there is one. b.mu is held.
func (b *Box) announce() {
	if b.arrived != nil && len(b.in) > 0 {
		close(b.arrived)
		b.arrived = nil
	}
}

// firstRoom and growth say how the list of senders grows: in few steps, since each
// copies it.
const firstRoom, growth = 16, 8

// push queues a notice. b.mu is held.
func (b *Box) push(n *abi.Notice) (unread int) {
	if len(b.in) == cap(b.in) {
		b.in = slices.Grow(b.in, min(b.depth, max(firstRoom, growth*cap(b.in)))-cap(b.in))
	}
	b.in = b.in[:len(b.in)+1]
	b.in[len(b.in)-1] = *n
	unread = b.unread()
	b.stats.Accepted++
	b.stats.Peak = max(b.stats.Peak, unread)
	return unread
}

// giveUp takes a sender that waits out of the line, and reports false when its
// notice has been decided on already.
func (b *Box) giveUp(w *sender) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(w.decided) > 0 {
		return false
	}
	w.gone, w.n = true, abi.Notice{}
	b.stats.Waiting--
	if gone := len(b.waiting) - b.stats.Waiting; gone > fewGone && gone > b.stats.Waiting {
		b.waiting = slices.DeleteFunc(b.waiting, func(w *sender) bool { return w.gone })
		b.anybody.Store(len(b.waiting) > 0)
	}
	return true
}

// fewGone is how many senders that gave up are left in the line in any case: to take
// them out costs a walk along it.
const fewGone = 64

// fallBack hands a notice that came too late to the fallback.
func (b *Box) fallBack(n abi.Notice) error {
	if b.fallback == nil {
		return ErrClosed
	}
	b.fallback(n)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.FellBack++
	return nil
}

// madeRoom queues what senders hold that wait, the first first. The caller holds
// mu.
func (b *Box) madeRoom() {
	moved := 0
	for _, w := range b.waiting {
		if b.full() {
			break
		}
		moved++
		b.decide(w, true)
	}
	if moved == 0 {
		return
	}
	rest := copy(b.waiting, b.waiting[moved:])
	clear(b.waiting[rest:])
	if b.waiting = b.waiting[:rest]; rest == 0 {
		b.anybody.Store(false)
	}
}

// decide ends the wait of a sender. The caller holds mu.
func (b *Box) decide(w *sender, queued bool) {
	if w.gone {
		return
	}
	if queued {
		b.push(&w.n)
	}
	w.n = abi.Notice{}
	b.stats.Waiting--
	w.decided <- queued
}
