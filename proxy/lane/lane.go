package lane

import (
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// Lane is a [State] with what a process knows besides it.
type Lane struct {
	mu sync.Mutex

	*State

	// Messages has what plugins see of each item, nil for what was not asked for.
	Messages [][]abi.Message
	// Fresh are the items of the latest request that the lane did not have before.
	Fresh []int
	// Busy counts requests whose answer is under way.
	Busy int
	// Marker and Events are about compactions, and are saved with the lane.
	Marker *compaction.Marker
	Events []compaction.Event
	// Moved counts changes of the lane by others: another process, or an operator.
	Moved int
	// Attached belongs to the user of the package.
	Attached any

	digests []uint64
	// before is what the lane was before its latest request.
	before before
	// base is the state as it is in the store, unsure what may be there.
	base   *State
	unsure *unsure
	view   atomic.Pointer[view]
}

// Lock holds the lane for one request.
func (l *Lane) Lock() { l.mu.Lock() }

// Unlock gives it back, and shows other requests what it is now.
func (l *Lane) Unlock() {
	l.view.Store(l.look())
	l.mu.Unlock()
}

// look is what other requests are compared with.
func (l *Lane) look() *view {
	return &view{
		id: l.ID, origin: l.Origin, version: l.Version, hashes: l.Hashes, digests: l.digests, answer: l.Answer, open: l.Open, busy: l.Busy, used: l.Used,
	}
}

// view is a lane as it was when it was last unlocked. It is read without waiting for the lane.
type view struct {
	id      string
	origin  string
	version uint64
	hashes  []wire.Hash
	digests []uint64
	answer  []string
	open    bool
	busy    int
	used    time.Time
}

// before is what Back restores.
type before struct {
	hashes  []wire.Hash
	digests []uint64
	open    bool
	edits   []Edit
}

// Back restores the hashes, the edits and the open answer from before the latest request, which did not go to the provider: the same again is a
// new request.
func (l *Lane) Back() {
	b := &l.before
	l.Hashes, l.digests, l.Open, l.Edits = b.hashes, b.digests, b.open, b.edits
	l.Messages = nil // what plugins took out of them may be in no edit now
}

// reset begins an epoch: the client has compacted the conversation. That is a marker of the thread, as a compaction of the proxy is.
func (l *Lane) reset(m *matcher, now time.Time) {
	if first, last := l.Span(0, len(l.Messages)); l.Kept > 0 && first != "" {
		l.Marker = &compaction.Marker{
			ID: rand.Text(), ThreadID: l.ID, FromID: first, ToID: last, At: now, Policy: clientPolicy, PreTokens: l.Usage.Prompt(),
			Summary: "The client compacted the conversation by itself. Its summary is in the messages that follow.",
		}
		l.Events = append(l.Events, compaction.Event{
			Kind: compaction.EventSwapped, Thread: l.ID, At: now, AttemptID: l.Marker.ID, Policy: clientPolicy, FromID: first, ToID: last,
			PreTokens: l.Marker.PreTokens, Reason: "the client compacted by itself",
		})
	}
	l.truncate(0, m)
	l.Messages, l.Kept = nil, 0
	l.Epoch++
}

func newID() string { return "proxy-" + rand.Text()[:16] }
