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

// DefaultDepth is how many notices a box holds when [Config] does not say.
const DefaultDepth = 4096

// warnEvery is the depth at whose multiples a warning is logged: a run that
// does not read its inbox is worth knowing of before senders block.
const warnEvery = 256

// ErrClosed is returned by Send and Recv on a closed box.
var ErrClosed = errors.New("inbox: box is closed")

// Config makes a [Box]. The zero Config is valid.
type Config struct {
	// Depth is how many unread notices the box holds before Send waits.
	// Zero means [DefaultDepth].
	Depth int
	// Fallback takes notices that arrive after Close, each exactly once. It must
	// be safe for concurrent use. Nil makes Send return [ErrClosed] instead.
	Fallback func(abi.Notice)
	// Logger gets a warning when unread notices pile up. Nil discards.
	Logger *slog.Logger
}

// Box is a bounded queue of notices.
type Box struct {
	depth    int
	fallback func(abi.Notice)
	log      *slog.Logger

	mu      sync.Mutex
	queue   []abi.Notice
	closed  bool
	arrived chan struct{} // closed when a notice arrives or the box closes
	room    chan struct{} // closed when room appears or the box closes
}

// New makes an empty box.
func New(cfg Config) (*Box, error) {
	depth := cmp.Or(cfg.Depth, DefaultDepth)
	if depth < 0 {
		return nil, fmt.Errorf("inbox: Config.Depth is %d, want 0 or more", depth)
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Box{
		depth: depth, fallback: cfg.Fallback, log: log,
		arrived: make(chan struct{}), room: make(chan struct{}),
	}, nil
}

// Send puts a notice at the end of the queue. When the box is full it waits for
// room until ctx is done. On a closed box the notice goes to the fallback and
// Send returns nil, or [ErrClosed] when there is no fallback. A notice for which
// an error came back was not accepted.
//
// Notices of one sender keep their order. A sender that waits may be overtaken
// by another.
func (b *Box) Send(ctx context.Context, n abi.Notice) error {
	for {
		room, done := b.offer(ctx, n)
		if done {
			return nil
		}
		if room == nil {
			break
		}
		select {
		case <-room:
		case <-ctx.Done():
			return fmt.Errorf("inbox: send: %w", context.Cause(ctx))
		}
	}
	if b.fallback == nil {
		return ErrClosed
	}
	b.fallback(n)
	return nil
}

// offer queues n and reports true, or returns the channel to wait on. A nil
// channel means that the box is closed.
func (b *Box) offer(ctx context.Context, n abi.Notice) (<-chan struct{}, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, false
	}
	if len(b.queue) >= b.depth {
		return b.room, false
	}
	b.queue = append(b.queue, n)
	if len(b.queue) == 1 {
		// Readers wait only when they found nothing, so the first notice wakes all.
		close(b.arrived)
		b.arrived = make(chan struct{})
	}
	if len(b.queue)%warnEvery == 0 {
		b.log.WarnContext(ctx, "inbox is piling up", "unread", len(b.queue), "depth", b.depth)
	}
	return nil, true
}

// Recv takes the oldest notice. It waits until there is one, ctx is done, or the
// box is closed ([ErrClosed]).
func (b *Box) Recv(ctx context.Context) (abi.Notice, error) {
	for {
		n, arrived, err := b.take()
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

// take returns the oldest notice, or the channel to wait on.
func (b *Box) take() (n abi.Notice, arrived <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		if b.closed {
			return n, nil, ErrClosed
		}
		return n, b.arrived, nil
	}
	n = b.queue[0]
	b.queue[0] = abi.Notice{} // lets go of the payload
	b.queue = b.queue[1:]
	b.madeRoom()
	return n, nil, nil
}

// Drain takes everything that is queued, oldest first, and does not wait.
func (b *Box) Drain() []abi.Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.queue
	b.queue = nil
	if len(all) > 0 {
		b.madeRoom()
	}
	return all
}

// Close closes the box and returns what was not read, oldest first, in one
// atomic step. Senders that wait for room go to the fallback. A second Close
// returns nil.
func (b *Box) Close() []abi.Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	all := b.queue
	b.queue = nil
	close(b.arrived)
	close(b.room)
	return all
}

// Len is the number of unread notices.
func (b *Box) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

// madeRoom wakes senders that wait. The caller holds the lock.
func (b *Box) madeRoom() {
	if b.closed {
		return
	}
	close(b.room)
	b.room = make(chan struct{})
}
