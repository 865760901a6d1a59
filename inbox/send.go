package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// Send puts a notice at the end of the queue. When the box is full it waits for
// room until ctx is done; those that wait get room in the order in which they
// came, in a deep box when there is room for several. On a closed box the notice goes to the fallback and Send returns nil, or
// [ErrClosed] when there is no fallback. A notice for which an error came back was
// not accepted.
func (b *Box) Send(ctx context.Context, n abi.Notice) error {
	w, err := b.offer(ctx, &n)
	switch {
	case errors.Is(err, ErrClosed):
		return b.fallBack(n)
	case w == nil:
		return nil
	}
	select {
	case queued := <-w.decided:
		if queued {
			return nil
		}
		return b.fallBack(n)
	case <-ctx.Done():
	}
	if b.giveUp(w) {
		return fmt.Errorf("inbox: send: %w", context.Cause(ctx))
	}
	if <-w.decided { // it was decided in the same moment
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

// spins is how often to try for the lock before parking. The lock is held for less
// time than parking takes, and a mutex parks at once when many goroutines are ready
// to run.
const spins = 30

func (b *Box) lock() {
	for range spins {
		if b.mu.TryLock() {
			return
		}
	}
	b.mu.Lock()
}

// offer queues n, or returns what to wait on.
func (b *Box) offer(ctx context.Context, n *abi.Notice) (*sender, error) {
	b.lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	if !b.full() {
		b.accept(ctx, n)
		return nil, nil
	}
	w := &sender{n: *n, decided: make(chan bool, 1)}
	b.waiting = append(b.waiting, w)
	b.anybody.Store(true)
	b.stats.Waiting++
	b.stats.Waited++
	// The reader may have made room since full was asked, and seen nobody who waits.
	b.madeRoom()
	b.announce()
	return w, nil
}

// unread is how much is unread, or up to a lot more. The caller holds mu.
func (b *Box) unread() int { return len(b.in) + int(b.left.Load()) }

func (b *Box) full() bool { return b.unread() >= b.depth }

// accept queues n. The caller holds mu and has seen that there is room.
func (b *Box) accept(ctx context.Context, n *abi.Notice) {
	unread := b.push(n)
	b.announce()
	if unread%warnEvery == 0 {
		b.log.WarnContext(ctx, "inbox is piling up", "unread", unread, "depth", b.depth)
	}
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
const firstRoom, growth = 16, 4

// push queues a notice. b.mu is held.
func (b *Box) push(n *abi.Notice) (unread int) {
	if len(b.in) == cap(b.in) {
		b.in = slices.Grow(b.in, min(b.depth, max(firstRoom, growth*cap(b.in)))-cap(b.in))
	}
	b.in = append(b.in, *n)
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
	return true
}

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
	clear(b.waiting[:moved])
	if b.waiting = b.waiting[moved:]; len(b.waiting) == 0 {
		b.waiting = nil
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
	b.stats.Waiting--
	w.decided <- queued
}
