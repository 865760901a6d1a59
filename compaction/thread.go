package compaction

import (
	"context"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// maxMarkers is how many compactions of a thread can be undone; one more marker
// is kept, to go back to.
const maxMarkers = 16

// thread is what a compactor knows of one.
type thread struct {
	id string
	// used orders threads by their last use, for Compactor.mu.
	used uint64

	mu sync.Mutex
	// gone means that the compactor has forgotten the thread: another one has its id.
	gone bool
	// state is what the store has at revision rev, once loaded.
	state  State
	rev    uint64
	loaded bool
	// stale asks for the state to be read again. found means that another process's compaction was under way when it was
	// read first.
	stale, found bool
	// loadAfter is when the store is asked again after it failed.
	loadAfter time.Time
	flight    *flight
	// recent are the last compactions of this process.
	recent []string
	index  *index
	bill   calibration
	// summary is the newest marker as the model sees it.
	summary *shown
	masks   masks
	// cache is what the latest inference used, nil before the first.
	cache *abi.CacheUse

	requested bool
	focus     string
	// said is the last refusal, repeats how often it came since it was reported, about
	// the compaction under way that was the reason.
	said     *AdmissionDecision
	about    *flight
	detail   string
	repeats  int
	fallback bool
	// ended are compactions whose end was not reported yet, see [Compactor.Ended].
	ended []abi.Compaction
}

// shown is what the model sees of a marker: its summary as a message, and the messages that it masks, by
// their places in the log that was read so often.
type shown struct {
	marker  string
	message abi.Message
	tokens  int64
	masked  map[int]abi.Message
	reads   int
}

// flight is a compaction under way in this process. It is reserved before
// anything is spawned, and whatever comes back must name it.
type flight struct {
	InFlight

	log      []abi.Message // up to the end of the range, nil for an orphan
	started  time.Time
	deadline time.Time
	steps    int
	main     bool // written by Config.Summarizer, not by the fallback
	// version is what summarized when the flight began, see Versioned.
	version string
	// failed is why the summarizer gave no result, nil before it has ended.
	failed error
	// begun means that the task has its turn. Release gives the limiter's place
	// back, cancel ends the summarizer.
	begun   bool
	release func()
	cancel  context.CancelCauseFunc
	// orphan means that another process began it: only its result counts.
	orphan bool
	// retryAt is when a swap is tried again that the store did not take.
	retryAt time.Time
	retries int
}

// source is the range.
func (f *flight) source() []abi.Message {
	if len(f.log) == 0 {
		return nil
	}
	return f.log[f.Range.From:]
}

// leave gives the limiter's place back, unless the summarizer is still at work.
func (f *flight) leave() {
	if f.release != nil && !f.begun {
		f.release()
	}
}

// maxIdle is how many threads a compactor remembers at most, besides those that it must.
const maxIdle = 128

// hold returns a thread, locked.
func (c *Compactor) hold(id string) *thread {
	for {
		t := c.thread(id)
		t.mu.Lock()
		if !t.gone {
			return t
		}
		t.mu.Unlock()
	}
}

func (c *Compactor) thread(id string) *thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.threads[id]
	if !ok {
		if len(c.threads) >= maxIdle {
			c.forget()
		}
		t = &thread{id: id, index: newIndex(0)}
		c.threads[id] = t
	}
	c.uses++
	t.used = c.uses
	return t
}

// forget drops the thread that was not used for the longest time, with all that its log holds in memory: the
// next use reads log and store again. A thread stays that has a compaction under way, or that one was requested for.
func (c *Compactor) forget() {
	var oldest *thread
	for _, t := range c.threads {
		if (oldest == nil || t.used < oldest.used) && t.mu.TryLock() {
			if t.flight == nil && !t.requested {
				oldest = t
			}
			t.mu.Unlock()
		}
	}
	if oldest == nil || !oldest.mu.TryLock() {
		return // all are in use
	}
	defer oldest.mu.Unlock()
	if oldest.flight == nil && !oldest.requested {
		oldest.gone = true
		delete(c.threads, oldest.id)
	}
}

func (t *thread) latest() *Marker {
	if len(t.state.Markers) == 0 {
		return nil
	}
	return &t.state.Markers[len(t.state.Markers)-1]
}

// shown is what the model sees of the newest marker.
func (t *thread) shown(log []abi.Message, m *Marker) *shown {
	if t.summary == nil || t.summary.marker != m.ID || len(m.Masks) > 0 && t.summary.reads != t.index.reads {
		t.summary = t.index.show(log, m)
	}
	return t.summary
}

func (x *index) show(log []abi.Message, m *Marker) *shown {
	message := m.message()
	return &shown{marker: m.ID, message: message, tokens: EstimateMessage(&message), masked: masking(log, m.Masks), reads: x.reads}
}

// size is what the view of a log weighs under the newest marker, as estimated. The index
// must have read the log.
func (t *thread) size(log []abi.Message) int64 {
	m := t.latest()
	if m == nil {
		return t.index.tokens(0, len(t.index.entries))
	}
	return t.index.weight(m, t.shown(log, m))
}

// weight is the estimate of the view under a marker.
func (x *index) weight(m *Marker, s *shown) int64 {
	c, ok := x.covered(m)
	n := x.tokens(0, len(x.entries))
	if ok {
		n = x.size(c, s.tokens)
	}
	for i, masked := range s.masked {
		if _, seen := c.place(i); seen || !ok {
			n -= x.entries[i].tokens - EstimateMessage(&masked)
		}
	}
	return n
}
