package inbox

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
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

// ErrFull says that the box has no room: at once from TrySend, and from Send that it
// waited for room until its context was done. It has a method Full, by which packages
// that do not know this one see that it is no refusal.
var ErrFull error = fullError{}

type fullError struct{}

func (fullError) Error() string { return "inbox: box is full" }
func (fullError) Full() bool    { return true }

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
	waiting []*sender   // wait for room, in order; some have given up, no more than half and a few
	senders sync.Pool   // of *sender, for those who wait next; of this box alone, since channels belong to a synctest bubble
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
