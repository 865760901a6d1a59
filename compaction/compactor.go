package compaction

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/abi"
)

// TaskType is the type of a compaction's background task.
const (
	TaskType        = "context_compaction"
	taskDescription = "background context compaction"
)

// Summarizer writes a text that replaces a range of messages.
type Summarizer interface {
	Summarize(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error)
}

// Admitter decides whether a compaction may start now. It is asked whenever one is considered, with
// all that is known, also while another one is pending. What no policy can allow is a second
// compaction of a thread, one without a range, and more at a time than the [Limiter] has places.
type Admitter interface {
	Admit(ctx context.Context, r *abi.AdmitRequest) (*abi.Decision, error)
}

// Spawn starts a background task of a thread under an id. The notification of its end, with that id, is for
// [Compactor.Consume]. background.Manager.Housekeep is one.
type Spawn func(ctx context.Context, thread, id, taskType, description string, body func(ctx context.Context) error) error

// Config makes a [Compactor]. Spawn is required.
type Config struct {
	Policy Policy
	Quota  Quota
	// Summarizer writes summaries; [Ledger] when nil.
	Summarizer Summarizer
	// PolicyName says in events which policy wrote a summary.
	PolicyName string
	// Admitter decides; [Cost] when nil.
	Admitter Admitter
	Spawn    Spawn
	// Fallback writes while the breaker is open, see [Policy]. It must need no model;
	// [Ledger] when nil.
	Fallback Summarizer
	// Signals samples the machine; nil knows nothing, which never blocks.
	// signals.Sampler.Sample is one.
	Signals func() abi.Signals
	// Limiter bounds compactions of all threads together; give all compactors of a
	// process the same. Nil makes one for this compactor.
	Limiter *Limiter
	// Store keeps what must outlive the process; nil keeps it in memory. Owner names
	// this process in reservations, a fresh id when empty. A thread belongs to one
	// process at a time: what another one had begun is taken over by the first Consider.
	Store Store
	Owner string
	// Keep stores a long tool output of a thread and returns the handle with which the model
	// can read it; blob.Store.Put is for it. Nil masks no output. An output for which
	// it fails stays as it is.
	Keep func(thread, label, text string) (handle string, err error)
	// Model is the name of the model whose context is compacted, for records.
	Model string
	// Cost is what a usage of a model costs, for the admission policy; nil is not known. agent.Config.Cost
	// is one.
	Cost func(model string, u abi.Usage) float64
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
// that it is given only grow: it remembers what it read, so a caller that changes a
// message in a log must copy the log first. Of threads that are idle it remembers those that
// were used last.
type Compactor struct {
	cfg    atomic.Pointer[Config] // never changed in place
	scorer *Scorer

	mu      sync.Mutex
	threads map[string]*thread
	uses    uint64
}

// New checks the config and returns a compactor.
func New(cfg Config) (*Compactor, error) {
	if cfg.Spawn == nil {
		return nil, errors.New("compaction: Config.Spawn is missing")
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Fallback == nil {
		cfg.Fallback = Ledger{}
	}
	if cfg.Limiter == nil {
		cfg.Limiter = NewLimiter(0)
	}
	if cfg.Store == nil {
		cfg.Store = NewMemory()
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
	cfg.Owner = cmp.Or(cfg.Owner, cfg.NewID())
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Compactor{scorer: NewScorer(), threads: make(map[string]*thread)}
	c.cfg.Store(&cfg)
	return c, nil
}

// check sets the defaults of what [Compactor.Reconfigure] takes.
func (cfg *Config) check() (err error) {
	if cfg.Summarizer == nil {
		cfg.Summarizer = Ledger{}
		cfg.PolicyName = cmp.Or(cfg.PolicyName, Ledger{}.Name())
	}
	if cfg.Admitter == nil {
		cfg.Admitter = Cost{}
	}
	if cfg.Cost == nil {
		cfg.Cost = func(string, abi.Usage) float64 { return 0 }
	}
	if cfg.Policy, err = cfg.Policy.withDefaults(); err != nil {
		return err
	}
	cfg.Quota, err = cfg.Quota.withDefaults()
	return err
}

// Reconfigure takes Policy, Quota, Summarizer, PolicyName, Admitter and Cost of cfg, for all threads, and
// reads nothing else of it. A request to the summarizer before ends there; the next one of the same compaction
// goes to the new one. After an error nothing has changed.
func (c *Compactor) Reconfigure(cfg Config) error {
	if err := cfg.check(); err != nil {
		return err
	}
	next := *c.conf()
	next.Policy, next.Quota, next.Admitter, next.Cost, next.Keep = cfg.Policy, cfg.Quota, cfg.Admitter, cfg.Cost, cfg.Keep
	next.Summarizer, next.PolicyName = cfg.Summarizer, cfg.PolicyName
	c.cfg.Store(&next)
	return nil
}

// conf is the config that is in force.
func (c *Compactor) conf() *Config { return c.cfg.Load() }

// use locks a thread whose state was loaded, if the store lets it.
func (c *Compactor) use(id string) *thread {
	t := c.hold(id)
	c.load(t)
	return t
}

// Markers returns the thread's compactions that can be undone, oldest first.
func (c *Compactor) Markers(id string) []Marker {
	t := c.use(id)
	defer t.mu.Unlock()
	return slices.Clone(t.state.Markers)
}

// Total is how many compactions of the thread were swapped in.
func (c *Compactor) Total(id string) int {
	t := c.use(id)
	defer t.mu.Unlock()
	return t.state.Total
}

// Tokens estimates messages of the thread, scaled by what was billed. It
// remembers the log, so that asking again costs little.
func (c *Compactor) Tokens(id string, messages []abi.Message) int64 {
	t := c.use(id)
	defer t.mu.Unlock()
	return t.bill.apply(t.index.weigh(messages))
}

// Pending reports whether a compaction of the thread is under way.
func (c *Compactor) Pending(id string) bool {
	t := c.use(id)
	defer t.mu.Unlock()
	return t.flight != nil
}

// Request asks for a compaction at the next Consider, below the threshold and after
// an undo too.
// The focus is passed to the summarizer.
func (c *Compactor) Request(id, focus string) {
	t := c.hold(id)
	defer t.mu.Unlock()
	t.requested, t.focus = true, focus
}

// Calibrate learns from what a provider billed for messages that were sent.
func (c *Compactor) Calibrate(id string, promptTokens int64, sent []abi.Message) {
	t := c.hold(id)
	defer t.mu.Unlock()
	t.bill.learn(promptTokens, t.index.weigh(sent))
}

// follow brings what is known of the log up to date.
func (c *Compactor) follow(t *thread, log []abi.Message) {
	t.index.read(log)
	c.mask(t, log)
}

// look follows the log, and swaps in what waits for it.
func (c *Compactor) look(t *thread, log []abi.Message) {
	c.follow(t, log)
	now := c.conf().Now()
	if f := t.flight; f != nil && f.Result != nil && (f.orphan || now.After(f.deadline)) && !now.Before(f.retryAt) {
		c.swap(t, log, f) // its notice was lost, or its process
	}
}

// View returns what the model sees of the log: the newest compaction applied, long
// tool outputs that the model has read masked, and cut by [Truncate] when the
// window would be exceeded even so.
func (c *Compactor) View(id string, log []abi.Message) []abi.Message {
	t := c.use(id)
	defer t.mu.Unlock()
	c.look(t, log)
	view, estimate := t.view(log)
	limit := c.conf().Policy.WindowTokens - c.conf().Policy.ReserveTokens
	tokens := t.bill.apply(estimate)
	if tokens <= limit {
		t.fallback = false
		return view
	}
	cut := Truncate(view, int64(float64(estimate)*float64(limit)/float64(tokens)))
	if !t.fallback {
		t.fallback = true
		c.observe(t, Event{
			Kind: EventFallback, Reason: "the window is exceeded: the oldest rounds are left out until a compaction lands", PreTokens: tokens, PostTokens: t.bill.apply(t.index.weigh(cut)), ViewMessages: len(cut),
		})
	}
	return cut
}

// view is the log with the newest marker applied and outputs masked, and its
// estimate.
func (t *thread) view(log []abi.Message) ([]abi.Message, int64) {
	m := t.latest()
	if m == nil {
		return t.masks.over(log), t.index.tokens(0, len(log))
	}
	shown := t.shown(log, m)
	cover, ok := t.index.covered(m)
	if !ok {
		return put(t.masks.over(log), shown.masked, inPlace), t.index.weight(m, shown)
	}
	view := cover.view(log, shown.message)
	t.masks.within(view, cover)
	return put(view, shown.masked, cover.place), t.index.weight(m, shown)
}

// observe reports an event, and keeps it. Steps of a run wait for it, so it comes
// seldom: nothing is reported twice in a row.
func (c *Compactor) observe(t *thread, e Event) {
	e.Thread, e.At, e.Reason = t.id, c.conf().Now(), clip(e.Reason)
	if e.Model == "" {
		e.Model = c.conf().Model
	}
	c.conf().Observe(e)
	if err := c.conf().Store.Record(e); err != nil {
		c.conf().Logger.Warn("an event of a compaction could not be stored", "thread_id", t.id, "kind", string(e.Kind), "error", err)
	}
}

// maxReason bounds what others may write into an event, in bytes.
const maxReason = 1024

// clip bounds text that a guest or a provider wrote.
func clip(s string) string { return clipTo(s, maxReason) }

func clipTo(s string, n int) string {
	if len(s) > n {
		s = s[:n] + "…"
	}
	return strings.ToValidUTF8(s, "")
}
