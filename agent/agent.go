package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
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
	// Consume applies a notice if it is about a compaction, and says whether it was.
	Consume(thread string, log []abi.Message, n abi.Notice) bool
	// Request asks for a compaction at the next Consider.
	Request(thread, focus string)
	// Calibrate tells what a provider billed for messages that were sent.
	Calibrate(thread string, promptTokens int64, sent []abi.Message)
}

// Config says what an [Agent] runs with. Model and Phases are required.
type Config struct {
	Model  llm.Model
	Phases *phases.Runtime
	// Tools that the model may call; none when nil.
	Tools Tools
	// Compactor; nil leaves the context as it grows.
	Compactor Compactor
	// SystemPrompt stands before every request. It is not part of the log.
	SystemPrompt string
	// AgentID names the agent in identities and events.
	AgentID string
	// MaxRounds ends a run after so many inferences: 16 when 0, no limit when
	// negative.
	MaxRounds int
	// Grace is how long a cancelled tool, and run_end after a cancelled run, may
	// still take. 5 s when 0.
	Grace time.Duration
	// InboxDepth bounds how many notices may wait, in the inbox of a run and in a
	// thread that has none: 4096 when 0.
	InboxDepth int
	// Listen gets the events of a run, one at a time per run, with the run's
	// context. The run waits for it, and goes on if it panics. It may deliver, but
	// not start the thread's next run.
	Listen func(context.Context, Event)
	// NewID makes ids of runs and messages; time-ordered UUIDs when nil.
	NewID  func() string
	Now    func() time.Time
	Logger *slog.Logger
}

const (
	defaultMaxRounds = 16
	defaultGrace     = 5 * time.Second
)

// Agent runs threads. Make one with [New].
type Agent struct {
	cfg     Config
	mu      sync.Mutex
	threads map[string]*Thread
}

// New checks the config and returns an agent.
func New(cfg Config) (*Agent, error) {
	if cfg.Model == nil {
		return nil, errors.New("agent: Config.Model is missing")
	}
	if cfg.Phases == nil {
		return nil, errors.New("agent: Config.Phases is missing; phases.New with no plugins will do")
	}
	if cfg.Grace < 0 {
		return nil, fmt.Errorf("agent: Config.Grace is %v, must not be negative", cfg.Grace)
	}
	if cfg.InboxDepth < 0 {
		return nil, fmt.Errorf("agent: Config.InboxDepth is %d, must not be negative", cfg.InboxDepth)
	}
	cfg.InboxDepth = cmp.Or(cfg.InboxDepth, inbox.DefaultDepth)
	cfg.MaxRounds = cmp.Or(cfg.MaxRounds, defaultMaxRounds)
	cfg.Grace = cmp.Or(cfg.Grace, defaultGrace)
	if cfg.Tools == nil {
		cfg.Tools = noTools{}
	}
	if cfg.Listen == nil {
		cfg.Listen = func(context.Context, Event) {}
	}
	if cfg.NewID == nil {
		cfg.NewID = newID
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Agent{cfg: cfg, threads: make(map[string]*Thread)}, nil
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// Thread returns the thread with that id, a new one if there is none yet.
func (a *Agent) Thread(id string) *Thread {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok := a.threads[id]
	if !ok {
		t = newThread(id)
		a.threads[id] = t
	}
	return t
}

// Deliver hands a notice to the thread: to the inbox of its run if it has one,
// and else to the thread, which keeps it for the next run. It waits while either
// is full, until ctx is done; a notice for which an error came back was not taken.
func (a *Agent) Deliver(ctx context.Context, thread string, n abi.Notice) error {
	return a.Thread(thread).deliver(ctx, n, a.cfg.InboxDepth)
}

type noTools struct{}

func (noTools) Tools() []abi.Tool { return nil }

func (noTools) CallTool(_ context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	return abi.ToolResult{}, fmt.Errorf("tool %q not found", call.Name)
}

// Append adds messages to a thread without a run, as when a user writes and
// nobody is to answer yet. Missing ids are filled in. What waits for the thread
// is applied first, and a compaction may start. It fails with [ErrThreadBusy]
// while the thread has a run, and with [ErrMessages] when the messages do not fit:
// an assistant message with calls comes together with the results of all of them.
func (a *Agent) Append(ctx context.Context, thread string, messages ...abi.Message) error {
	t := a.Thread(thread)
	a.Settle(thread)
	messages = slices.Clone(messages)
	a.identify(messages)
	if err := t.appendIdle(messages); err != nil {
		return fmt.Errorf("agent: thread %q: %w", thread, err)
	}
	if a.cfg.Compactor != nil {
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
func (a *Agent) Settle(thread string) {
	t := a.Thread(thread)
	if a.cfg.Compactor == nil || t.busy() {
		return
	}
	kept := slices.DeleteFunc(t.takeHeld(), func(n abi.Notice) bool {
		return a.consume(t, n)
	})
	t.putBack(kept)
}
