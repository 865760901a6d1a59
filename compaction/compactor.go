package compaction

import (
	"context"
	"errors"
	"log/slog"
	"slices"
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

// Compactor compacts threads in the background. Make one with [New].
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

// maxMarkers is how many compactions of a thread can be undone.
const maxMarkers = 16

// thread is what a compactor knows of one.
type thread struct {
	mu      sync.Mutex
	markers []Marker
	total   int
	flight  *flight
	// recent are the tasks of the last compactions, whose end nobody else needs
	// to hear of.
	recent    []string
	estimates estimates
	bill      calibration

	attempts  int
	failures  int
	lastStart time.Time
	lastFail  time.Time
	notBefore time.Time

	requested bool
	focus     string
	// said is the last admission that was told, repeats how often it came again.
	said     string
	repeats  int
	fallback bool
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
}

func (c *Compactor) thread(id string) *thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.threads[id]
	if !ok {
		t = &thread{estimates: make(estimates)}
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

// tokens estimates messages, scaled by what was billed.
func (t *thread) tokens(messages []abi.Message) int64 {
	return t.bill.apply(t.estimates.of(messages))
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
// remembers what it saw, so that asking again costs little.
func (c *Compactor) Tokens(id string, messages []abi.Message) int64 {
	t := c.thread(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tokens(messages)
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
	if len(t.markers) == 0 {
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
	t.bill.learn(promptTokens, t.estimates.of(sent))
}

// View returns what the model sees of the log: the newest compaction applied,
// and cut by [Truncate] when the window would be exceeded even so.
func (c *Compactor) View(id string, log []abi.Message) []abi.Message {
	t := c.thread(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	view := View(log, t.latest())
	limit := c.cfg.Policy.WindowTokens - c.cfg.Policy.ReserveTokens
	tokens := t.tokens(view)
	if tokens <= limit {
		t.fallback = false
		return view
	}
	cut := Truncate(view, limit*t.estimates.of(view)/tokens)
	if !t.fallback {
		t.fallback = true
		c.observe(id, Event{Kind: EventFallback, PreTokens: tokens, PostTokens: t.tokens(cut), ViewMessages: len(cut)})
	}
	return cut
}

func (c *Compactor) observe(id string, e Event) {
	e.Thread, e.At = id, c.cfg.Now()
	c.cfg.Observe(e)
}

// estimates remembers what messages cost, so that a log is not read again at
// every step.
type estimates map[string]estimate

type estimate struct {
	size   int
	tokens int64
}

func (e estimates) of(messages []abi.Message) int64 {
	var n int64
	for i := range messages {
		m := &messages[i]
		if m.ID == "" {
			n += EstimateMessage(m)
			continue
		}
		size := messageSize(m)
		known, ok := e[m.ID]
		if !ok || known.size != size {
			known = estimate{size: size, tokens: EstimateMessage(m)}
			e[m.ID] = known
		}
		n += known.tokens
	}
	return n
}

// messageSize tells an edited message from the one that was estimated.
func messageSize(m *abi.Message) int {
	n := len(m.ToolCalls)
	for i := range m.Content {
		n += len(m.Content[i].Text) + 1
	}
	return n
}
