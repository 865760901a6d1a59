package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/mortise-dev/mortise/abi"
)

// DefaultDepth is how many unread notifications a box or a thread of an inbox may have by default.
const DefaultDepth = 4096

// warnEvery is the depth at whose multiples a box logs a warning.
const warnEvery = 256

// Errors for errors.Is.
var (
	// ErrClosed reports that the box or the inbox was closed.
	ErrClosed = errors.New("inbox: closed")
	// ErrFull reports that there was no room.
	ErrFull = errors.New("inbox: full")
	// ErrDropped reports a notification of a task whose record is gone, with its thread.
	ErrDropped = errors.New("inbox: the task is gone")
	// ErrTooLarge reports that a notification is larger than Config.MaxEntry.
	ErrTooLarge = errors.New("inbox: notification is too large")
)

// Box is the bounded queue of one reader in memory, first in, first out.
type Box struct {
	log   *slog.Logger
	depth int

	mu      sync.Mutex
	queue   []abi.Notice  // unread, oldest first
	changed chan struct{} // closed and replaced when the queue changes or the box closes
	closed  bool
}

// NewBox makes an empty box. Depth is how many unread notifications it holds before Send waits, [DefaultDepth] when 0 or
// less. The logger gets a warning when they pile up; nil discards.
func NewBox(depth int, logger *slog.Logger) *Box {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Box{log: logger, depth: cmp.Or(max(depth, 0), DefaultDepth), changed: make(chan struct{})}
}

// Send puts a notification at the end of the queue. When the box is full it waits for room
// until ctx is done ([ErrFull]) or the box is closed ([ErrClosed]). When there is
// room the notification is accepted, also when ctx is done. A notification for
// which an error is returned was not accepted.
func (b *Box) Send(ctx context.Context, n abi.Notice) error {
	err := b.await(ctx, func() bool {
		if b.closed || len(b.queue) >= b.depth {
			return false
		}
		b.queue = append(b.queue, n)
		if unread := len(b.queue); unread%warnEvery == 0 {
			b.log.WarnContext(ctx, "inbox is piling up", "unread", unread, "depth", b.depth)
		}
		return true
	})
	if err != nil && !errors.Is(err, ErrClosed) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// Recv takes the oldest notification. It waits until there is one, ctx is done, or the
// box is closed ([ErrClosed]).
func (b *Box) Recv(ctx context.Context) (n abi.Notice, err error) {
	err = b.await(ctx, func() bool {
		if len(b.queue) == 0 {
			return false
		}
		n, b.queue = b.queue[0], b.queue[1:]
		return true
	})
	if err != nil && !errors.Is(err, ErrClosed) {
		err = fmt.Errorf("inbox: receive: %w", err)
	}
	return n, err
}

// await calls change under the lock until it has changed the queue, the box is closed, or ctx is done.
func (b *Box) await(ctx context.Context, change func() bool) error {
	for {
		b.mu.Lock()
		done, closed, changed := change(), b.closed, b.changed
		if done {
			b.wake()
		}
		b.mu.Unlock()
		switch {
		case done:
			return nil
		case closed:
			return ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// wake has the calls that wait try again. The caller holds the lock.
func (b *Box) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Ready is closed when there may be something to drain.
func (b *Box) Ready() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	ready := b.changed
	if len(b.queue) > 0 {
		b.wake()
	}
	return ready
}

// Drain takes everything that is queued, oldest first, and does not wait.
func (b *Box) Drain() []abi.Notice { return b.take(false) }

func (b *Box) take(last bool) (taken []abi.Notice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken, b.queue, b.closed = b.queue, nil, b.closed || last
	b.wake()
	return taken
}

// PutBack puts notifications before all others, whether there is room or not.
func (b *Box) PutBack(list ...abi.Notice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = slices.Concat(list, b.queue)
	b.wake()
}

// Unread returns what is queued, oldest first, and leaves it there.
func (b *Box) Unread() []abi.Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.queue)
}

// Close closes the box and returns what was not read, oldest first, in one atomic step: a
// notification sent before is in what it returns, one sent after is not accepted. A second Close returns nil.
func (b *Box) Close() []abi.Notice { return b.take(true) }

// Len is the number of unread notifications.
func (b *Box) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}
