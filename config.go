package mortise

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/blob"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// Config makes a [Runtime]. Only Agents is required. Stores that are nil keep what they have
// in memory, for as long as the process lives.
type Config struct {
	// Agents by name. Default names the agent of requests that name none; it may be empty
	// if there is one agent.
	Agents  map[string]Agent
	Default string
	// Plugins take part in the phases of every agent, except where [Agent.Plugins] selects some.
	Plugins []phases.Plugin
	// Hooks of plugins that have no time limit of their own may take that long, 5 s when 0.
	HookTimeout time.Duration

	// Store keeps threads, runs and their queue.
	Store store.Store
	// Outputs bounds large texts of background tasks and of tools, which Store keeps with their thread. Its Store and Logger are set by New.
	Outputs blob.Config
	// Inbox keeps notifications and records of background tasks, Store when nil: then a run acknowledges notifications with the checkpoint
	// that has them. Shared reports that other processes use it, too.
	Inbox  store.Store
	Shared bool
	// Records keeps what plugins and policies decided; nil keeps nothing.
	Records Recorder

	// ThreadTools are tools that one thread has besides those of its agent, whose names take precedence; nil adds none. It is called
	// concurrently, and may return nil.
	ThreadTools func(thread string) agent.Tools

	// Compaction compacts threads in the background; nil compacts nothing. Spawn, LiveTasks, Keep
	// and Logger are set by New. Its state is in Store when Compaction.Store is nil: then a marker is written with the checkpoint of the
	// run that swaps it in.
	Compaction *compaction.Config
	// Tasks bounds background tasks. Deliver, Ledger and Shorten are set by New.
	Tasks background.Config
	// Mailbox bounds the dispatch of runs. Store, Runtime and Wake are set by New.
	Mailbox mailbox.Config
	// Words renders notifications for the model, see [agent.Config].
	Words func(list []abi.Notice) (text string, used int)
	// WakeDelay is how long a notification waits for others before it wakes its thread,
	// 50 ms when 0.
	WakeDelay time.Duration
	// Patience is how long a run waits for a decision or for tasks, see [agentrun.Config].
	Patience func(run agent.Record, w agent.Waiting) time.Duration

	// Observers receive what runs do. Each begins inside of the one before it.
	Observers []Observer
	// Logger gets a few lines about each run at level info, its inferences and tool calls at level debug, and what went
	// wrong: ids, names and counts, no content. Nil discards.
	Logger *slog.Logger
}

// Agent is a model with its instructions and tools. Model is required.
type Agent struct {
	Model llm.Model
	// ModelName is the provider's name of the model.
	ModelName    string
	SystemPrompt string
	// Tools the model may call; none when nil. A name that is also a tool for background
	// tasks stays the agent's.
	Tools agent.Tools
	// Background names tools whose calls run as background tasks: the model gets a task id at once, a run
	// that has nothing else to do waits, and the result reaches its thread as a notification.
	Background []string
	// Plugins whose hooks are called; all of Config.Plugins when empty.
	Plugins  []string
	Override *abi.InferenceOverride
	// MaxRounds bounds the inferences of a run: 16 when 0, no limit when negative.
	MaxRounds   int
	ToolTimeout time.Duration
	Retry       llm.Retry
	// Breaker may be shared by agents that use the same provider.
	Breaker *llm.Breaker
	// Cost of an inference in the unit of [agent.StopCost]; nil costs nothing.
	Cost func(model string, u abi.Usage) float64
	Stop []agent.StopPolicy
}

func (c Config) checked() (Config, error) {
	if len(c.Agents) == 0 {
		return c, errors.New("Config.Agents is empty: add an agent with a model")
	}
	names := slices.Sorted(maps.Keys(c.Agents))
	if c.Default == "" && len(names) == 1 {
		c.Default = names[0]
	}
	if _, ok := c.Agents[c.Default]; !ok && c.Default != "" {
		return c, fmt.Errorf("Config.Default: there is no agent %.80q among %.400q", c.Default, names)
	}
	for _, name := range names {
		if name == "" {
			return c, errors.New("Config.Agents has an agent without a name")
		}
		if c.Agents[name].Model == nil {
			return c, fmt.Errorf("agent %.80q: Model is nil", name)
		}
		if _, err := setupOf(&c).hooks(c.Agents[name], c.Logger, nil, nil); err != nil {
			return c, fmt.Errorf("agent %.80q: %w", name, err)
		}
	}
	if c.Store == nil {
		c.Store = memstore.New()
	}
	if c.Inbox == nil {
		c.Inbox = c.Store
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
