package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

// Profile is an agent: that of a [Config], or one that a run can be handed to, see [HandoffKey].
// Model and Phases are required.
type Profile struct {
	Model  llm.Model
	Phases *phases.Runtime
	// Tools that the model may call; none when nil.
	Tools Tools
	// SystemPrompt is the first message of every request. It is not part of the log.
	SystemPrompt string
	// ModelName is the provider's name of the model. Override changes each request;
	// that of the run's request comes over it, that of plugins over both.
	ModelName string
	Override  *abi.InferenceOverride
}

// ToolMode is how the calls of one step are executed.
type ToolMode string

// Tool modes.
const (
	// Sequential executes one call after the other, each with its phases before
	// the next one is gated. It stops at a call that the tool itself suspends.
	Sequential ToolMode = "sequential"
	// ParallelBatch executes calls at the same time. Decisions about suspended calls
	// wait until all of them were decided.
	ParallelBatch ToolMode = "parallel_batch_approval"
	// ParallelStreaming does the same, and each decision counts at once.
	ParallelStreaming ToolMode = "parallel_streaming"
)

// Config constructs an [Agent]. Model and Phases are required. Its groups are embedded: a field of a group is
// read and set as one of the Config.
type Config struct {
	// Profile is the agent of a run that names no other.
	Profile
	Limits
	Inference
	Execution
	Notifications

	// AgentID names the agent in identities and events.
	AgentID string
	// Compactor; nil leaves the context as it grows.
	Compactor Compactor
	// Checkpoints keeps threads across processes; nil keeps them in memory only.
	Checkpoints Checkpointer
	// Resolve finds the agent that a run is handed to; nil knows none.
	Resolve func(ctx context.Context, agentID string) (Profile, error)
	// Listen gets the events of a run, one at a time per run, with the run's
	// context. The run waits for it, and continues if it panics. It may deliver, but
	// not start the thread's next run.
	Listen func(context.Context, Event)
	// NewID makes ids of runs and messages; time-ordered UUIDs when nil.
	NewID  func() string
	Now    func() time.Time
	Logger *slog.Logger
}

// Limits bounds a run.
type Limits struct {
	// MaxRounds ends a run after so many inferences: 16 when 0, no limit when
	// negative. Inferences of a run that waited and continues count together.
	MaxRounds int
	// Stop are further policies that end a run.
	Stop []StopPolicy
	// Grace is how long a cancelled tool or inference, and run_end after a cancelled
	// run, may still take. 5 s when 0.
	Grace time.Duration
	// WaitLimit is how long a run with [Request.Wait] waits in the process, 15 min
	// when 0. Then it stays waiting, and can continue later.
	WaitLimit time.Duration
}

// Inference is how the model is asked.
type Inference struct {
	// Retry, Breaker and Partials are for asking the model, see llm.Client.
	Retry    llm.Retry
	Breaker  *llm.Breaker
	Partials llm.Partials
	// Observe receives each request to a model, from all runs concurrently.
	Observe llm.Observe
	// Cost is what an inference cost, in the unit of [StopCost]; nil costs nothing.
	Cost func(model string, u abi.Usage) float64
}

// Execution is how tools are called.
type Execution struct {
	// ToolMode is [Sequential] when empty. MaxParallel bounds the calls at a time, 8
	// when 0.
	ToolMode    ToolMode
	MaxParallel int
	// ToolTimeout is how long a tool may take, 10 min when 0.
	ToolTimeout time.Duration
	// ToolContext makes the context of a tool, as to name to what it starts where it comes
	// from. background.ToolContext is one. Nil leaves the context as it is.
	ToolContext func(ctx context.Context, run abi.RunIdentity, call abi.ToolCall) context.Context
}

// Notifications is how a run receives notifications of tasks, and waits for them.
type Notifications struct {
	// Pending reports whether tasks of a thread run that its run must wait for. When it
	// says no, what they had to tell must have been delivered.
	// background.Manager.HasBlocking is one. Nil waits for nothing.
	Pending func(thread string) bool
	// Take takes the stored notifications of a thread, and does not wait. A run takes at
	// its start and after each step, and acknowledges when a checkpoint holds the
	// model's answer. Inbox.Take of package inbox is one, in a function that returns
	// this type. Nil means that notifications come by [Agent.Deliver] alone.
	Take func(ctx context.Context, thread string) (Delivery, error)
	// Words makes one text for the model of notifications of tasks, and returns how many of
	// them, from the first on, it covers; the rest follows. Foreign text in it must be
	// escaped, as package inbox does. Nil means inbox.Events with its budget.
	Words func(list []abi.Notice) (text string, used int)
	// InboxDepth bounds how many delivered notices of a thread may wait: 4096 when 0.
	InboxDepth int
}

const (
	defaultMaxRounds   = 16
	defaultGrace       = 5 * time.Second
	defaultToolTimeout = 10 * time.Minute
	defaultWaitLimit   = 15 * time.Minute
	defaultParallel    = 8
)

func (c *Config) validate() error {
	if c.Model == nil {
		return errors.New("agent: Config.Model is missing")
	}
	if c.Phases == nil {
		return errors.New("agent: Config.Phases is missing; phases.New with no plugins will do")
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"Grace", int64(c.Grace)},
		{"ToolTimeout", int64(c.ToolTimeout)},
		{"WaitLimit", int64(c.WaitLimit)},
		{"InboxDepth", int64(c.InboxDepth)},
		{"MaxParallel", int64(c.MaxParallel)},
	} {
		if f.value < 0 {
			return fmt.Errorf("agent: Config.%s is negative", f.name)
		}
	}
	switch c.ToolMode {
	case "", Sequential, ParallelBatch, ParallelStreaming:
	default:
		return fmt.Errorf("agent: Config.ToolMode %.40q is not one of sequential, parallel_batch_approval, parallel_streaming", c.ToolMode)
	}
	return nil
}

func (c *Config) setDefaults() {
	c.InboxDepth = cmp.Or(c.InboxDepth, inbox.DefaultDepth)
	c.MaxRounds = cmp.Or(c.MaxRounds, defaultMaxRounds)
	c.Grace = cmp.Or(c.Grace, defaultGrace)
	c.ToolTimeout = cmp.Or(c.ToolTimeout, defaultToolTimeout)
	c.WaitLimit = cmp.Or(c.WaitLimit, defaultWaitLimit)
	c.MaxParallel = cmp.Or(c.MaxParallel, defaultParallel)
	c.ToolMode = cmp.Or(c.ToolMode, Sequential)
	if c.Tools == nil {
		c.Tools = noTools{}
	}
	if c.Cost == nil {
		c.Cost = func(string, abi.Usage) float64 { return 0 }
	}
	if c.Words == nil {
		c.Words = func(list []abi.Notice) (string, int) { return inbox.Events(list, 0) }
	}
	if c.ToolContext == nil {
		c.ToolContext = func(ctx context.Context, _ abi.RunIdentity, _ abi.ToolCall) context.Context { return ctx }
	}
	if c.Pending == nil {
		c.Pending = func(string) bool { return false }
	}
	if c.Listen == nil {
		c.Listen = func(context.Context, Event) {}
	}
	if c.NewID == nil {
		c.NewID = newID
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}
