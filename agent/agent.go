package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
)

// Errors for errors.Is.
var (
	// ErrThreadBusy is returned when a thread already has a run.
	ErrThreadBusy = errors.New("the thread already has a run")
	// ErrMessages is returned when messages do not fit the conversation.
	ErrMessages = errors.New("the messages do not fit the conversation")
	// ErrPanic is a model, a listener or another part of the config that panicked.
	ErrPanic = errors.New("panicked")
)

// Tools runs the tools that a model asks for.
type Tools interface {
	// Tools lists what the model may call.
	Tools() []abi.Tool
	// CallTool runs one call. An error is the tool's own breakdown and becomes an
	// error result; it does not end the run. Calls may come concurrently.
	CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error)
}

// Compactor keeps a thread's view within the model's window.
// compaction.Compactor is one.
type Compactor interface {
	// View returns what the model sees of the log.
	View(thread string, log []abi.Message) []abi.Message
	// Consider may start a compaction in the background. It never waits for one.
	Consider(ctx context.Context, thread string, log []abi.Message) bool
	// Consume applies a notice if it is about a compaction, and reports whether it was.
	Consume(thread string, log []abi.Message, n abi.Notice) bool
	// Request asks for a compaction at the next Consider.
	Request(thread, focus string)
	// Calibrate records what a provider billed for messages that were sent.
	Calibrate(thread string, promptTokens int64, sent []abi.Message)
}

// Billing is what a [Compactor] may also implement: it learns what each inference used, of which
// model. compaction.Compactor is one.
type Billing interface {
	Billed(thread, model string, u abi.Usage)
}

// Agent runs threads. Make one with [New].
type Agent struct {
	cfg   Config
	base  profile
	rules []rule

	mu      sync.Mutex
	threads map[string]*Thread
	// live finds the threads of runs under way.
	live map[string]*Thread
}

// New checks the config and returns an agent.
func New(cfg Config) (*Agent, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	a := &Agent{cfg: cfg, threads: make(map[string]*Thread), live: make(map[string]*Thread)}
	var err error
	if a.rules, err = newRules(cfg.Stop); err != nil {
		return nil, err
	}
	a.base, err = a.profile(cfg.AgentID, cfg.Profile)
	return a, err
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// Thread returns the thread with that id, a new one if there is none yet.
func (a *Agent) Thread(id string) *Thread {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok := a.threads[id]
	if !ok {
		t = newThread(id, inbox.NewBox(a.cfg.InboxDepth, a.cfg.Logger))
		a.threads[id] = t
	}
	return t
}

// Deliver hands a notice to the thread, for its run or the next one. It waits while Config.InboxDepth
// notices wait, until ctx is done; a notice for which an error came back was not taken.
// Messages without an id get one.
func (a *Agent) Deliver(ctx context.Context, thread string, n abi.Notice) error {
	n.Messages = slices.Clone(n.Messages)
	a.identify(n.Messages)
	if err := a.Thread(thread).box.Send(ctx, n); err != nil {
		return fmt.Errorf("agent: thread %q: deliver: %w", thread, err)
	}
	return nil
}

// Append adds messages to a thread without a run, as when a user writes and
// no answer is wanted yet. Missing ids are filled in. What waits for the thread
// is applied first, and a compaction may start, unless a plugin has a hook at
// before_compaction: then the next run considers it. It fails with [ErrThreadBusy]
// while the thread has a run, and with [ErrMessages] when the messages do not fit:
// an assistant message with calls comes together with the results of all of them.
func (a *Agent) Append(ctx context.Context, thread string, messages ...abi.Message) error {
	t := a.Thread(thread)
	if err := a.load(ctx, t); err != nil {
		return fmt.Errorf("agent: thread %q: %w", thread, err)
	}
	a.settleIdle(ctx, t)
	messages = slices.Clone(messages)
	a.identify(messages)
	if err := t.appendIdle(messages); err != nil {
		return fmt.Errorf("agent: thread %q: %w", thread, err)
	}
	// Plugins that take part in compactions are asked within a run.
	if a.cfg.Compactor != nil && len(a.cfg.Phases.Order(abi.BeforeCompaction)) == 0 {
		a.cfg.Compactor.Consider(ctx, thread, t.snapshot())
	}
	return nil
}

// identify fills in missing ids.
func (a *Agent) identify(messages []abi.Message) {
	for i := range messages {
		if messages[i].ID == "" {
			messages[i].ID = a.cfg.NewID()
		}
	}
}

// Settle applies what waits for a thread that has no run: a compaction that
// ended after the last run is swapped in now. Other notices stay for the next
// run. With a run under way it does nothing, since the run does the same.
func (a *Agent) Settle(ctx context.Context, thread string) {
	a.settleIdle(ctx, a.Thread(thread))
}

func (a *Agent) settleIdle(ctx context.Context, t *Thread) {
	if a.cfg.Compactor == nil || t.busy() {
		return
	}
	a.settleStored(ctx, t)
	t.box.PutBack(slices.DeleteFunc(t.box.Drain(), func(n abi.Notice) bool { return a.consume(t, n) })...)
}
