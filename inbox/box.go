package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mortise-dev/mortise/abi"
)

// DefaultDepth is how many notices a box holds when [Config] does not say.
const DefaultDepth = 4096

// warnEvery is the depth at whose multiples a warning is logged: a run that
// does not read its inbox is worth knowing of before senders block.
const warnEvery = 256

// ErrClosed is returned by Send and Recv on a closed box.
var ErrClosed = errors.New("inbox: box is closed")

// ErrFull is returned by TrySend when the box has no room.
var ErrFull = errors.New("inbox: box is full")

// Stats counts what went through a box. Accepted is the sum of Read, HandedBack
// and what is unread.
type Stats struct {
	// Accepted notices were queued; FellBack ones went to the fallback instead.
	Accepted, FellBack uint64
	// Read notices were taken by Recv, TryRecv and Drain; HandedBack ones by Close.
	Read, HandedBack uint64
	// Waiting senders wait for room now; Waited is how often one had to.
	Waiting int
	Waited  uint64
	// Peak is the greatest number of unread notices so far; of a deep box up to 1/64 more.
	Peak int
}

// Config makes a [Box]. The zero Config is valid.
type Config struct {
	// Depth is how many unread notices the box holds before Send waits. Zero means
	// [DefaultDepth]. Of a deep box up to 1/64 may be free without anybody hearing of
	// it: room is handed on by the lot.
	Depth int
	// Fallback takes notices that arrive after Close, each exactly once. It must
	// be safe for concurrent use. Nil makes Send return [ErrClosed] instead.
	Fallback func(abi.Notice)
	// Logger gets a warning when unread notices pile up. Nil discards.
	Logger *slog.Logger
}

// Box is a bounded queue of notices. What is unread is in two lists: that to which
// senders append, and that from which the reader takes. They change places when the
// reader has come to the end of his, so that senders and the reader seldom meet.
type Box struct {
	fallback func(abi.Notice)
	log      *slog.Logger
	depth    int
	// lot is how many places become free before senders hear of it.
	lot int

	// reading guards what the reader has; it is locked before mu.
	reading sync.Mutex
	out     []abi.Notice
	at      int // of the next in out
	read    uint64
	// left is what is unread of out, brought up to date for each lot: the senders look
	// at it all the time.
	left atomic.Int64

	mu      sync.Mutex
	in      []abi.Notice
	waiting []*sender   // wait for room, in order; some have given up
	anybody atomic.Bool // waits; changed with mu
	stats   Stats
	closed  bool
	arrived chan struct{} // made by who waits for a notice; closed when one arrives or the box closes
}

// maxLot bounds [Box.lot]. A small box hands on each place at once.
const maxLot = 64

// sender waits for room with a notice.
type sender struct {
	n abi.Notice
	// decided gets true when the notice was queued and false when the box closed.
	decided chan bool
	gone    bool // gave up; guarded by Box.mu
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
	return &Box{fallback: cfg.Fallback, log: log, depth: depth, lot: min(maxLot, max(1, depth/maxLot))}, nil
}

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

// firstRoom and growth say how the list of senders grows: in few steps, since each
// copies it.
const firstRoom, growth = 16, 4

// announce wakes who waits for a notice, if there is one. b.mu is held.
func (b *Box) announce() {
	if b.arrived != nil && len(b.in) > 0 {
		close(b.arrived)
		b.arrived = nil
	}
}

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

// Close closes the box and returns what was not read, oldest first, in one
// atomic step. Senders that wait for room go to the fallback. A second Close
// returns nil.
func (b *Box) Close() []abi.Notice {
	b.reading.Lock()
	defer b.reading.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	all := b.empty(nil)
	b.in, b.out = nil, nil
	b.stats.HandedBack = uint64(len(all))
	for _, w := range b.waiting {
		b.decide(w, false)
	}
	b.waiting = nil
	b.anybody.Store(false)
	if b.arrived != nil {
		close(b.arrived)
		b.arrived = nil
	}
	return all
}

// Closed reports whether the box is closed.
func (b *Box) Closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// Len is the number of unread notices.
func (b *Box) Len() int {
	b.reading.Lock()
	defer b.reading.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.in) + len(b.out) - b.at
}

// Stats returns the counts at this moment: a sender that waits and a peak near
// the depth say that the run does not keep up.
func (b *Box) Stats() Stats {
	b.reading.Lock()
	defer b.reading.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Read = b.read
	return s
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
