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

// DefaultDepth is how many notifications a box holds when [Config] does not say.
const DefaultDepth = 4096

// warnEvery is the depth at whose multiples a warning is logged, before senders block.
const warnEvery = 256

// ErrClosed is returned by Send and Recv on a closed box.
var ErrClosed = errors.New("inbox: box is closed")

// ErrFull reports that the box has no room: at once from TrySend, and from Send that it
// waited for room until its context was done. It has a method Full, by which packages
// that do not import this one tell it from a refusal.
var ErrFull error = fullError{}

type fullError struct{}

func (fullError) Error() string { return "inbox: box is full" }
func (fullError) Full() bool    { return true }

// Stats counts what went through a box. Accepted is the sum of Read, HandedBack
// and what is unread.
type Stats struct {
	// Accepted notifications were queued; FellBack ones went to the fallback instead.
	Accepted, FellBack uint64
	// Read notifications were taken by Recv, TryRecv, RecvAll and Drain; HandedBack ones by Close.
	Read, HandedBack uint64
	// Waiting senders wait for room now; Waited is how often one had to.
	Waiting int
	Waited  uint64
	// Peak is the greatest number of unread notifications so far.
	Peak int
}

// Config makes a [Box]. The zero Config is valid.
type Config struct {
	// Depth is how many unread notifications the box holds before Send waits. Zero means
	// [DefaultDepth].
	Depth int
	// Fallback takes notifications that arrive after Close, each exactly once. It must
	// be safe for concurrent use. Nil makes Send return [ErrClosed] instead.
	Fallback func(abi.Notice)
	// Logger gets a warning when unread notifications pile up. Nil discards.
	Logger *slog.Logger
}

// Box is a bounded queue of notifications.
type Box struct {
	fallback func(abi.Notice)
	log      *slog.Logger
	depth    int

	mu      sync.Mutex
	queue   []abi.Notice  // unread, oldest first
	waiting list.List     // of *sender, first come first; empty unless queue is full
	arrived chan struct{} // closed when a notification arrives or the box closes; nil if no reader waits
	closed  bool
	stats   Stats
}

// sender waits for room with a notification.
type sender struct {
	n abi.Notice
	// decided gets true when the notification was queued and false when the box closed.
	decided chan bool
	place   *list.Element // in Box.waiting
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
	return &Box{fallback: cfg.Fallback, log: log, depth: depth}, nil
}

// Send puts a notification at the end of the queue. When the box is full it waits for room
// until ctx is done ([ErrFull]); senders get room in the order in which they came. When there is
// room it is taken, also when ctx is done. On a closed box the notification goes to the fallback
// and Send returns nil, or [ErrClosed] when there is no fallback. A notification for which an
// error is returned was not accepted.
func (b *Box) Send(ctx context.Context, n abi.Notice) error {
	w, err := b.offer(ctx, n)
	switch {
	case err != nil:
		return b.fallBack(n)
	case w == nil:
		return nil
	}
	var queued bool
	select {
	case queued = <-w.decided:
	case <-ctx.Done():
		if b.giveUp(w) {
			return fmt.Errorf("%w: %w", ErrFull, context.Cause(ctx))
		}
		queued = <-w.decided // decided in the same moment
	}
	if queued {
		return nil
	}
	return b.fallBack(n)
}

// offer queues n, or puts a sender in the line of those that wait for room.
func (b *Box) offer(ctx context.Context, n abi.Notice) (*sender, error) {
	err := b.TrySend(ctx, n)
	if err == nil || errors.Is(err, ErrClosed) {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	b.stats.Waited++
	w := &sender{n: n, decided: make(chan bool, 1)}
	w.place = b.waiting.PushBack(w)
	b.admit() // the reader may have made room since
	return w, nil
}

// giveUp leaves the line of those that wait. It is false when the sender has been decided on already.
func (b *Box) giveUp(w *sender) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(w.decided) > 0 {
		return false
	}
	b.waiting.Remove(w.place)
	return true
}

// fallBack hands a notification that came too late to the fallback.
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

// TrySend is Send without waiting and without the fallback: [ErrFull] when there
// is no room, [ErrClosed] when the box is closed.
func (b *Box) TrySend(ctx context.Context, n abi.Notice) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return ErrClosed
	case len(b.queue) >= b.depth:
		return ErrFull
	}
	b.push(n)
	if unread := len(b.queue); unread%warnEvery == 0 {
		b.log.WarnContext(ctx, "inbox is piling up", "unread", unread, "depth", b.depth)
	}
	return nil
}

// push queues a notification and wakes readers. The caller holds mu, as of all that follow.
func (b *Box) push(n abi.Notice) {
	b.queue = append(b.queue, n)
	b.stats.Accepted++
	b.stats.Peak = max(b.stats.Peak, len(b.queue))
	b.wake()
}

func (b *Box) wake() {
	if b.arrived != nil {
		close(b.arrived)
		b.arrived = nil
	}
}

// admit queues what senders hold that wait, as long as there is room.
func (b *Box) admit() {
	for len(b.queue) < b.depth {
		w := b.first()
		if w == nil {
			return
		}
		b.push(w.n)
		w.decided <- true
	}
}

// first takes the first sender out of the line, nil if none waits.
func (b *Box) first() *sender {
	e := b.waiting.Front()
	if e == nil {
		return nil
	}
	w, _ := b.waiting.Remove(e).(*sender) // as all in the list
	return w
}

// takeOne takes the oldest notification, of which there is one.
func (b *Box) takeOne() abi.Notice {
	n := b.queue[0]
	b.queue[0] = abi.Notice{} // lets go of the payload
	b.queue = b.queue[1:]
	b.stats.Read++
	b.admit()
	return n
}

// takeAll takes all that is queued.
func (b *Box) takeAll() []abi.Notice {
	all := b.queue
	b.queue = nil
	b.stats.Read += uint64(len(all))
	b.admit()
	return all
}

// Recv takes the oldest notification. It waits until there is one, ctx is done, or the
// box is closed ([ErrClosed]).
func (b *Box) Recv(ctx context.Context) (n abi.Notice, err error) {
	err = b.wait(ctx, func() { n = b.takeOne() })
	return n, err
}

// RecvAll waits as [Box.Recv] does, and takes all that is queued then, oldest first.
func (b *Box) RecvAll(ctx context.Context) (all []abi.Notice, err error) {
	err = b.wait(ctx, func() { all = b.takeAll() })
	return all, err
}

// wait calls take when there is a notification.
func (b *Box) wait(ctx context.Context, take func()) error {
	for {
		arrived, err := b.takeOrWait(take)
		if arrived == nil {
			return err
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return fmt.Errorf("inbox: receive: %w", context.Cause(ctx))
		}
	}
}

// takeOrWait calls take, or returns what to wait on.
func (b *Box) takeOrWait(take func()) (arrived <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case len(b.queue) > 0:
		take()
		return nil, nil
	case b.closed:
		return nil, ErrClosed
	case b.arrived == nil:
		b.arrived = make(chan struct{})
	}
	return b.arrived, nil
}

// TryRecv takes the oldest notification, if there is one.
func (b *Box) TryRecv() (abi.Notice, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return abi.Notice{}, false
	}
	return b.takeOne(), true
}

// Drain takes everything that is queued, oldest first, and does not wait. What
// senders hold that wait for room is queued next, for the next call.
func (b *Box) Drain() []abi.Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takeAll()
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
	left := b.queue
	b.queue = nil
	b.stats.HandedBack = uint64(len(left))
	for w := b.first(); w != nil; w = b.first() {
		w.decided <- false
	}
	b.wake()
	return left
}

// Closed reports whether the box is closed.
func (b *Box) Closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// Len is the number of unread notifications.
func (b *Box) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

// Stats returns the counts at this moment: a sender that waits and a peak near
// the depth show that the run does not keep up.
func (b *Box) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Waiting = b.waiting.Len()
	return s
}
