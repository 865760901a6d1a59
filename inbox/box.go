package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// BoxConfig makes a [Box]. The zero BoxConfig is valid.
type BoxConfig struct {
	// Depth is how many unread notifications the box holds before Send waits, [DefaultDepth] when 0.
	Depth int
	// Fallback takes notifications that arrive after Close, each exactly once, on the goroutine of the
	// sender. It must be safe for concurrent use. Nil makes Send return [ErrClosed] instead.
	Fallback func(abi.Notice)
	// Logger gets a warning when unread notifications pile up. Nil discards.
	Logger *slog.Logger
}

// Box is the bounded queue of a thread in memory, first in, first out.
type Box struct {
	fallback func(abi.Notice)
	log      *slog.Logger
	depth    int

	mu      sync.Mutex
	queue   []abi.Notice  // unread, oldest first
	changed chan struct{} // closed when the queue changes or the box closes; nil if no call waits for that
	closed  bool
}

// NewBox makes an empty box.
func NewBox(cfg BoxConfig) (*Box, error) {
	depth := cmp.Or(cfg.Depth, DefaultDepth)
	if depth < 0 {
		return nil, fmt.Errorf("inbox: BoxConfig.Depth is %d, want 0 or more", depth)
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Box{fallback: cfg.Fallback, log: log, depth: depth}, nil
}

// Send puts a notification at the end of the queue. When the box is full it waits for room
// until ctx is done ([ErrFull]). When there is
// room the notification is accepted, also when ctx is done. On a closed box the notification goes to
// the fallback and Send returns nil, or [ErrClosed] when there is no fallback. A notification for
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
	switch {
	case errors.Is(err, ErrClosed) && b.fallback != nil:
		b.fallback(n)
		return nil
	case err != nil && !errors.Is(err, ErrClosed):
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
		switch {
		case change():
			b.wake()
			b.mu.Unlock()
			return nil
		case b.closed:
			b.mu.Unlock()
			return ErrClosed
		case b.changed == nil:
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// wake has the calls that wait try again. The caller holds the lock.
func (b *Box) wake() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// take removes and returns what is queued. The caller holds the lock.
func (b *Box) take() []abi.Notice {
	taken := b.queue
	b.queue = nil
	b.wake()
	return taken
}

// Drain takes everything that is queued, oldest first, and does not wait.
func (b *Box) Drain() []abi.Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.take()
}

// Close closes the box and returns what was not read, oldest first, in one atomic step: a
// notification sent before is in what it returns, one sent after goes to the fallback. Notifications of
// senders that wait for room go to the fallback. A second Close returns nil.
func (b *Box) Close() []abi.Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.take()
}

// Len is the number of unread notifications.
func (b *Box) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}
