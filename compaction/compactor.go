package compaction

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/abi"
)

// Names of what a compaction's task says, and of its type.
const (
	EventTypeCompacted = "context.compacted"
	EventTypeFailed    = "context.compaction_failed"
	TaskType           = "context_compaction"
	taskDescription    = "background context compaction"
)

// Summarizer writes a text that stands in for a range of messages.
type Summarizer interface {
	Summarize(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error)
}

// Admitter says whether a compaction may start now. It is asked after the native
// rules have allowed it.
type Admitter interface {
	Admit(ctx context.Context, r *abi.AdmitRequest) (*abi.Decision, error)
}

// Spawn starts a background task of a thread and returns its id. What the body
// emits reaches the thread's inbox as custom notices, before the notice of its
// end. background.Manager.Housekeep is one.
type Spawn func(
	ctx context.Context, thread, taskType, description string,
	body func(ctx context.Context, emit func(eventType string, payload any) bool) error,
) (string, error)

// Config makes a [Compactor]. Summarizer and Spawn are required.
type Config struct {
	Policy     Policy
	Quota      Quota
	Summarizer Summarizer
	// PolicyName says in events which policy wrote a summary.
	PolicyName string
	// Admitter is asked when the native rules allow; nil asks nobody else.
	Admitter Admitter
	Spawn    Spawn
	// Signals samples the machine; nil knows nothing, which never blocks.
	Signals func() abi.Signals
	// LiveTasks lists the tasks of a thread that a summary must mention.
	LiveTasks func(thread string) []string
	// Observe gets every event, one at a time for each thread. It must not call
	// the Compactor.
	Observe func(Event)
	Now     func() time.Time
	NewID   func() string
	Logger  *slog.Logger
}

// Compactor compacts threads in the background. Make one with [New]. The logs
// that it is given only grow: it remembers what it read, so whoever changes a
// message in a log must copy the log first.
type Compactor struct {
	cfg    Config
	scorer *Scorer

	mu      sync.Mutex
	threads map[string]*thread
}

// New checks the config and returns a compactor.
func New(cfg Config) (*Compactor, error) {
	if cfg.Summarizer == nil {
		return nil, errors.New("compaction: Config.Summarizer is missing")
	}
	if cfg.Spawn == nil {
		return nil, errors.New("compaction: Config.Spawn is missing")
	}
	var err error
	if cfg.Policy, err = cfg.Policy.withDefaults(); err != nil {
		return nil, err
	}
	if cfg.Quota, err = cfg.Quota.withDefaults(); err != nil {
		return nil, err
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Event) {}
	}
	if cfg.Signals == nil {
		cfg.Signals = func() abi.Signals { return abi.Signals{} }
	}
	if cfg.LiveTasks == nil {
		cfg.LiveTasks = func(string) []string { return nil }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Compactor{cfg: cfg, scorer: NewScorer(), threads: make(map[string]*thread)}, nil
}

// maxMarkers is how many compactions of a thread can be undone; one more marker
// is kept, to go back to.
const maxMarkers = 16

// thread is what a compactor knows of one.
type thread struct {
	mu      sync.Mutex
	markers []Marker
	forgot  bool // older markers than these
	total   int
	flight  *flight
	// recent are the tasks of the last compactions, whose end nobody else needs
	// to hear of.
	recent []string
	// early are tasks that ended before Spawn had told their id.
	early map[string]string
	index *index
	bill  calibration
	// summary is the newest marker as the model sees it.
	summary *shown

	attempts  int
	failures  int
	lastStart time.Time
	lastFail  time.Time
	notBefore time.Time

	requested bool
	focus     string
	// said is the last refusal, repeats how often it came since it was told.
	said     *AdmissionDecision
	detail   string
	repeats  int
	fallback bool
}

// shown is a marker's summary as a message.
type shown struct {
	marker  string
	message abi.Message
	tokens  int64
}

// flight is a compaction under way. It is reserved before anything is spawned,
// and whatever comes back must name it.
type flight struct {
	id       string
	task     string
	rng      Range
	source   []abi.Message
	marker   string // id of the newest marker at the start
	before   int64
	started  time.Time
	deadline time.Time
	steps    int
	// scored is the quality of a summary, measured where the summarizer ran.
	scored  *Quality
	summary string
	notes   *notes
}

func (c *Compactor) thread(id string) *thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.threads[id]
	if !ok {
		t = &thread{index: newIndex(0)}
		c.threads[id] = t
	}
	return t
}

func (t *thread) latest() *Marker {
	if len(t.markers) == 0 {
		return nil
	}
	return &t.markers[len(t.markers)-1]
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

// Markers returns the thread's compactions that can be undone, oldest first.
func (c *Compactor) Markers(id string) []Marker {
	t := c.thread(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.markers)
}

// Total is how many compactions of the thread were swapped in.
func (c *Compactor) Total(id string) int {
	t := c.thread(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}

// Tokens estimates messages of the thread, scaled by what was billed. It
// remembers the log, so that asking again costs little.
func (c *Compactor) Tokens(id string, messages []abi.Message) int64 {
	t := c.thread(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bill.apply(t.index.weigh(messages))
}

// Pending reports whether a compaction of the thread is under way.
func (c *Compactor) Pending(id string) bool {
	t := c.thread(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.flight != nil
}

// Undo takes the newest compaction back: the view is what it was before. It
// reports false when there is none.
func (c *Compactor) Undo(id string) bool {
	t := c.thread(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	// The oldest marker that is kept may stand on one that was forgotten.
	if len(t.markers) == 0 || len(t.markers) == 1 && t.forgot {
		return false
	}
	t.markers = t.markers[:len(t.markers)-1]
	return true
}

// Request asks for a compaction at the next Consider, below the threshold too.
// The focus is passed to the summarizer.
func (c *Compactor) Request(id, focus string) {
	t := c.thread(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requested, t.focus = true, focus
}

// Calibrate learns from what a provider billed for messages that were sent.
func (c *Compactor) Calibrate(id string, promptTokens int64, sent []abi.Message) {
	t := c.thread(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bill.learn(promptTokens, t.index.weigh(sent))
}

// View returns what the model sees of the log: the newest compaction applied,
// and cut by [Truncate] when the window would be exceeded even so.
func (c *Compactor) View(id string, log []abi.Message) []abi.Message {
	t := c.thread(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.index.read(log)
	view, estimate := log, t.index.tokens(0, len(log))
	if cover, ok := t.index.covered(t.latest()); ok {
		summary := t.shown(t.latest())
		view, estimate = cover.view(log, summary.message), t.index.size(cover, summary.tokens)
	}
	limit := c.cfg.Policy.WindowTokens - c.cfg.Policy.ReserveTokens
	tokens := t.bill.apply(estimate)
	if tokens <= limit {
		t.fallback = false
		return view
	}
	cut := Truncate(view, int64(float64(estimate)*float64(limit)/float64(tokens)))
	if !t.fallback {
		t.fallback = true
		c.observe(id, Event{
			Kind: EventFallback, PreTokens: tokens, PostTokens: t.bill.apply(t.index.weigh(cut)), ViewMessages: len(cut),
		})
	}
	return cut
}

func (c *Compactor) observe(id string, e Event) {
	e.Thread, e.At, e.Reason = id, c.cfg.Now(), clip(e.Reason)
	c.cfg.Observe(e)
}

// maxReason bounds what others may write into an event, in bytes.
const maxReason = 1024

// clip bounds text that a guest or a provider wrote.
func clip(s string) string {
	if len(s) > maxReason {
		s = s[:maxReason] + "…"
	}
	return strings.ToValidUTF8(s, "")
}
