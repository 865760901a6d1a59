package phases

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/abi"
)

// Plugin is something that answers phases. A plugin must be safe for concurrent
// use, must not change the event, and must not keep anything between calls that
// changes its replies: a hook may be called twice for one phase.
type Plugin interface {
	// Describe says what the plugin subscribes to. It is called once, by New.
	Describe() abi.Description
	// OnPhase answers one event. A nil reply is no opinion.
	OnPhase(ctx context.Context, e *abi.Event) (*abi.Reply, error)
}

// Config says what a [Runtime] runs. The zero Config has no plugins.
type Config struct {
	Plugins []Plugin
	// HookTimeout is how long a hook may take, 5 s when 0.
	HookTimeout time.Duration
	// Grace is how much longer the phase waits for a hook that ignores its
	// context, 250 ms when 0.
	Grace time.Duration
	// Record gets what each hook did, when the phase is over, in firing order and
	// one call at a time. It must not block for long and must not fire phases. Nil
	// discards.
	Record func(Record)
	// Logger hears of failures that are ignored and of quarantines. Nil discards.
	Logger *slog.Logger
	// Now is the clock of records and quarantines, time.Now when nil.
	Now func() time.Time
	// NewID makes ids of appended messages, time-ordered UUIDs when nil.
	NewID  func() string
	Limits Limits
}

// Limits bounds what a hook may do. Zero fields mean the default.
type Limits struct {
	// Updates and Effects in one reply, 128 and 1024.
	Updates int
	Effects int
	// AppendedMessages in one reply, 32.
	AppendedMessages int
	// ReplyBytes is the size of everything in one reply, 8 MiB. MessageBytes is
	// that of the content of one message, 1 MiB. Sizes are those of the text and
	// keys, plus a little for each value.
	ReplyBytes   int
	MessageBytes int
	// StateValueBytes is the size of one state value, 256 KiB.
	StateValueBytes int
	// TextBytes is the length of one reason, note, code, key or name, 4 KiB.
	TextBytes int
	// Abandoned calls of one plugin that may still be running, 8. At that number
	// its hooks are not called, and fail, until one of them returns.
	Abandoned int
	// QuarantineAfter so many failures in a row, 3, a hook whose policy is
	// quarantine is skipped for QuarantineBackOff, 30 s. Each further failure
	// doubles that, up to QuarantineMax, 30 min.
	QuarantineAfter   int
	QuarantineBackOff time.Duration
	QuarantineMax     time.Duration
}

func (l *Limits) setDefaults() {
	l.Updates = cmp.Or(l.Updates, 128)
	l.Effects = cmp.Or(l.Effects, 1024)
	l.AppendedMessages = cmp.Or(l.AppendedMessages, 32)
	l.ReplyBytes = cmp.Or(l.ReplyBytes, 8<<20)
	l.MessageBytes = cmp.Or(l.MessageBytes, 1<<20)
	l.StateValueBytes = cmp.Or(l.StateValueBytes, 256<<10)
	l.TextBytes = cmp.Or(l.TextBytes, 4<<10)
	l.Abandoned = cmp.Or(l.Abandoned, 8)
	l.QuarantineAfter = cmp.Or(l.QuarantineAfter, 3)
	l.QuarantineBackOff = cmp.Or(l.QuarantineBackOff, 30*time.Second)
	l.QuarantineMax = cmp.Or(l.QuarantineMax, 30*time.Minute)
}

func (l *Limits) validate() error {
	for _, bound := range []struct {
		name  string
		value int64
	}{
		{"Updates", int64(l.Updates)},
		{"Effects", int64(l.Effects)},
		{"AppendedMessages", int64(l.AppendedMessages)},
		{"ReplyBytes", int64(l.ReplyBytes)},
		{"MessageBytes", int64(l.MessageBytes)},
		{"StateValueBytes", int64(l.StateValueBytes)},
		{"TextBytes", int64(l.TextBytes)},
		{"Abandoned", int64(l.Abandoned)},
		{"QuarantineAfter", int64(l.QuarantineAfter)},
		{"QuarantineBackOff", int64(l.QuarantineBackOff)},
		{"QuarantineMax", int64(l.QuarantineMax)},
	} {
		if bound.value < 0 {
			return fmt.Errorf("phases: Config.Limits.%s is %d, must not be negative", bound.name, bound.value)
		}
	}
	return nil
}

// Runtime fires phases at a fixed list of plugins. Make one with [New]; it is
// safe for concurrent use and needs no closing.
type Runtime struct {
	cfg   Config
	hooks map[abi.Phase][]*hook
	keys  map[string]*key // by full name

	recording sync.Mutex
}

// New checks the plugins' descriptions, takes a copy of each, and settles the
// order of their hooks. Names must be unique. A cycle of before and after
// constraints is an error that names it.
func New(cfg Config) (*Runtime, error) {
	if cfg.HookTimeout < 0 {
		return nil, fmt.Errorf("phases: Config.HookTimeout is %v, must not be negative", cfg.HookTimeout)
	}
	if cfg.Grace < 0 {
		return nil, fmt.Errorf("phases: Config.Grace is %v, must not be negative", cfg.Grace)
	}
	cfg.HookTimeout = cmp.Or(cfg.HookTimeout, 5*time.Second)
	cfg.Grace = cmp.Or(cfg.Grace, 250*time.Millisecond)
	cfg.Limits.setDefaults()
	if err := cfg.Limits.validate(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = newID
	}
	r := &Runtime{cfg: cfg, hooks: make(map[abi.Phase][]*hook), keys: make(map[string]*key)}
	if err := r.register(cfg.Plugins); err != nil {
		return nil, err
	}
	for _, p := range abi.Phases() {
		ordered, err := order(p, r.hooks[p])
		if err != nil {
			return nil, err
		}
		r.hooks[p] = ordered
	}
	return r, nil
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func (r *Runtime) register(plugins []Plugin) error {
	names := make(map[string]bool, len(plugins))
	for i, impl := range plugins {
		if impl == nil {
			return fmt.Errorf("phases: Config.Plugins[%d] is nil", i)
		}
		p, err := newPlugin(impl)
		if err != nil {
			return err
		}
		if names[p.name] {
			return fmt.Errorf("phases: plugin %q: there are two plugins of that name; give one of them another", p.name)
		}
		names[p.name] = true
		for _, h := range p.hooks {
			r.hooks[h.Phase] = append(r.hooks[h.Phase], h)
		}
		for _, k := range p.keys {
			r.keys[k.full] = k
		}
	}
	return nil
}

// Order returns the names of the plugins whose hooks fire at a phase, in firing
// order: lower priority first, then by name. Before and after constraints win
// over both. A plugin that subscribes twice is named twice. Unknown phases have
// no hooks.
func (r *Runtime) Order(p abi.Phase) []string {
	names := make([]string, 0, len(r.hooks[p]))
	for _, h := range r.hooks[p] {
		names = append(names, h.plugin.name)
	}
	return names
}
