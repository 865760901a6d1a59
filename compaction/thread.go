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

	mu sync.Mutex
	// state is what the store has at revision rev, once loaded.
	state  State
	rev    uint64
	loaded bool
	// loadAfter is when the store is asked again after it failed.
	loadAfter time.Time
	flight    *flight
	// recent are the tasks of the last compactions, whose end nobody else needs
	// to hear of.
	recent []string
	// early are tasks that ended before Spawn had told their id.
	early map[string]string
	index *index
	bill  calibration
	// summary is the newest marker as the model sees it.
	summary *shown
	masks   masks
	// cache and model are what the latest inference used, nil and empty before the first.
	cache *abi.CacheUse
	model string

	requested bool
	focus     string
	// said is the last refusal, repeats how often it came since it was told, about
	// the compaction under way that was the reason.
	said     *AdmissionDecision
	about    *flight
	detail   string
	repeats  int
	fallback bool
	// ended are compactions whose end was not reported yet, see [Compactor.Ended].
	ended []abi.Compaction
}

// shown is a marker's summary as a message.
type shown struct {
	marker  string
	message abi.Message
	tokens  int64
}

// flight is a compaction under way in this process. It is reserved before
// anything is spawned, and whatever comes back must name it.
type flight struct {
	InFlight

	source   []abi.Message
	started  time.Time
	deadline time.Time
	steps    int
	main     bool // written by Config.Summarizer, not by the fallback
	// version is what summarized when the flight began, see Versioned.
	version string
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

// leave gives the limiter's place back, unless the summarizer is still at work.
func (f *flight) leave() {
	if f.release != nil && !f.begun {
		f.release()
	}
}

func (c *Compactor) thread(id string) *thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.threads[id]
	if !ok {
		t = &thread{id: id, index: newIndex(0)}
		c.threads[id] = t
	}
	return t
}

func (t *thread) latest() *Marker {
	if len(t.state.Markers) == 0 {
		return nil
	}
	return &t.state.Markers[len(t.state.Markers)-1]
}

// shown is the newest marker's summary as the model sees it.
func (t *thread) shown(m *Marker) *shown {
	if t.summary == nil || t.summary.marker != m.ID {
		message := m.message()
		t.summary = &shown{marker: m.ID, message: message, tokens: EstimateMessage(&message)}
	}
	return t.summary
}

// size is what the view of a log weighs under a marker, as estimated. The index
// must have read the log.
func (t *thread) size(m *Marker) int64 {
	c, ok := t.index.covered(m)
	if !ok {
		return t.index.tokens(0, len(t.index.entries))
	}
	return t.index.size(c, t.shown(m).tokens)
}
