package inbox

import (
	"cmp"
	"container/list"
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
	waiting list.List     // of *sender, first come first; empty unless queue is full
	arrived chan struct{} // closed when a notification arrives or the box closes; nil if no reader waits
	closed  bool
}

// sender waits for room with a notification.
type sender struct {
	n abi.Notice
	// decided gets nil when the notification was queued and ErrClosed when the box closed.
	decided chan error
	place   *list.Element // in Box.waiting
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
// until ctx is done ([ErrFull]); senders get room in the order in which they came. When there is
// room the notification is accepted, also when ctx is done. On a closed box the notification goes to
// the fallback and Send returns nil, or [ErrClosed] when there is no fallback. A notification for
// which an error is returned was not accepted.
func (b *Box) Send(ctx context.Context, n abi.Notice) error {
	w, err := b.offer(ctx, n)
	if w != nil {
		err = b.await(ctx, w)
	}
	if errors.Is(err, ErrClosed) && b.fallback != nil {
		b.fallback(n)
		return nil
	}
	return err
}

// offer queues n, or returns its place among those that wait for room.
func (b *Box) offer(ctx context.Context, n abi.Notice) (*sender, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, ErrClosed
	case len(b.queue) < b.depth:
		b.push(n)
		if unread := len(b.queue); unread%warnEvery == 0 {
			b.log.WarnContext(ctx, "inbox is piling up", "unread", unread, "depth", b.depth)
		}
		return nil, nil
	}
	w := &sender{n: n, decided: make(chan error, 1)}
	w.place = b.waiting.PushBack(w)
	return w, nil
}

// await returns when the box has room, is closed, or ctx is done.
func (b *Box) await(ctx context.Context, w *sender) error {
	select {
	case err := <-w.decided:
		return err
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case err := <-w.decided: // in the same moment
		return err
	default:
		b.waiting.Remove(w.place)
		return fmt.Errorf("%w: %w", ErrFull, context.Cause(ctx))
	}
}

// push queues a notification and wakes readers. The caller holds mu, as in all functions that follow.
func (b *Box) push(n abi.Notice) {
	b.queue = append(b.queue, n)
	b.wake()
}

func (b *Box) wake() {
	if b.arrived != nil {
		close(b.arrived)
		b.arrived = nil
	}
}

// take removes the first n notifications, and gives their room to senders that wait.
func (b *Box) take(n int) []abi.Notice {
	taken := b.queue[:n:n]
	b.queue = b.queue[n:]
	if len(b.queue) == 0 {
		b.queue = nil // releases the payloads
	}
	for len(b.queue) < b.depth && b.waiting.Len() > 0 {
		w := b.first()
		b.push(w.n)
		w.decided <- nil
	}
	return taken
}

// first removes the first sender that waits, of which there is one.
func (b *Box) first() *sender {
	w, _ := b.waiting.Remove(b.waiting.Front()).(*sender) // as all in the list
	return w
}

// Recv takes the oldest notification. It waits until there is one, ctx is done, or the
// box is closed ([ErrClosed]).
func (b *Box) Recv(ctx context.Context) (abi.Notice, error) {
	for {
		n, arrived, err := b.tryRecv()
		if arrived == nil {
			return n, err
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return abi.Notice{}, fmt.Errorf("inbox: receive: %w", context.Cause(ctx))
		}
	}
}

// tryRecv takes the oldest notification, or returns what to wait for.
func (b *Box) tryRecv() (n abi.Notice, arrived <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case len(b.queue) > 0:
		return b.take(1)[0], nil, nil
	case b.closed:
		return abi.Notice{}, nil, ErrClosed
	case b.arrived == nil:
		b.arrived = make(chan struct{})
	}
	return abi.Notice{}, b.arrived, nil
}

// Drain takes everything that is queued, oldest first, and does not wait. Notifications of
// senders that wait for room are queued next, for the next call.
func (b *Box) Drain() []abi.Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.take(len(b.queue))
}

// Close closes the box and returns what was not read, oldest first, in one atomic step: a
// notification sent before is in what it returns, one sent after goes to the fallback. Notifications of
// senders that wait for room go to the fallback. A second Close returns nil.
func (b *Box) Close() []abi.Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	left := b.queue
	b.queue = nil
	for b.waiting.Len() > 0 {
		b.first().decided <- ErrClosed
	}
	b.wake()
	return left
}

// Len is the number of unread notifications.
func (b *Box) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}
