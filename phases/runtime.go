package phases

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
	"github.com/mortise-dev/mortise/phases/state"
)

// Plugin is something that answers phases. A plugin must be safe for concurrent
// use, must not change the event, and must not keep anything between calls that
// changes its replies: a hook may be called several times for one phase. The event
// is the plugin's until it returns, and not longer.
type Plugin interface {
	// Describe returns what the plugin subscribes to. It is called once, by New.
	Describe() abi.Description
	// OnPhase answers one event. A nil reply is no opinion. An event with an Action
	// or Effect is for the handler that the description declares.
	OnPhase(ctx context.Context, e *abi.Event) (*abi.Reply, error)
}

// NativeState is what a native plugin may have besides Plugin: state keys of which it
// does more than the operations of the contract. It is called once, by New, and
// returns them by the names in its description.
type NativeState interface {
	NativeState() map[string]state.Native
}

// Timed is what a plugin may have besides Plugin when its hooks have a time limit of their
// own, in place of Config.HookTimeout. HookTimeout is called before each call and must be
// quick; 0 is Config.HookTimeout.
type Timed interface {
	HookTimeout() time.Duration
}

// Ender is what a plugin may have besides Plugin when it keeps something for a run: it is notified that the last
// phase of the run is over in this process, whether the plugin has a hook there or not. Effects of
// that phase may still come to it. RunEnded must be quick, and must not keep run.
type Ender interface {
	RunEnded(run *abi.RunIdentity)
}

// Activator is what a native plugin may have besides Plugin: calls when a run
// begins with it, and when the run goes to an agent without it. The event has no phase, and
// the reply may hold updates of state only. A guest has run_start and run_end.
type Activator interface {
	Activate(ctx context.Context, e *abi.Event) (*abi.Reply, error)
	Deactivate(ctx context.Context, e *abi.Event) (*abi.Reply, error)
}

// Config is what a [Runtime] runs. The zero Config has no plugins.
type Config struct {
	Plugins []Plugin
	// Builtins are plugins of the program itself, such as its limits and guards.
	// They are like the others, except that Active does not switch them off.
	Builtins []Plugin
	// Active names the plugins whose hooks are called; empty is all of them. The
	// others keep their state, and execute actions and effects. A name that no
	// plugin has is an error: it may be that of a guard, misspelt.
	Active []string
	// Settings are handed to the plugins, by name, as Event.Config.
	Settings map[string]any
	// HookTimeout is how long a hook may take, 5 s when 0. A plugin that is [Timed] has its
	// own limit.
	HookTimeout time.Duration
	// Grace is how much longer the phase waits for a hook that ignores its
	// context, 250 ms when 0.
	Grace time.Duration
	// HandlerTime is how long the actions of one phase may take together, and its
	// effects, 30 s when 0. What is then left is a dead letter.
	HandlerTime time.Duration
	// Record gets what each hook did, when the phase is over, in firing order and
	// one call at a time. It must not block for long and must not fire phases. Nil
	// discards.
	Record func(Record)
	// Logger receives failures that are ignored and of quarantines. Nil discards.
	Logger *slog.Logger
	// Now is the clock of records and quarantines, time.Now when nil.
	Now func() time.Time
	// NewID makes ids of appended messages, time-ordered UUIDs when nil.
	NewID  func() string
	Limits Limits
}

// Runtime fires phases at a fixed list of plugins. Make one with [New]; it is
// safe for concurrent use and needs no closing.
type Runtime struct {
	cfg     Config
	plugins []*plugin
	active  map[*plugin]bool
	hooks   map[abi.Phase][]*hook
	// actions and effects find handlers by their full names.
	actions map[string]*hook
	effects map[string]*hook
	pending *state.Key
	dead    *state.Key

	recording sync.Mutex
}

// New checks the plugins' descriptions, takes a copy of each, and settles the
// order of their hooks. Names must be unique. A cycle of before and after
// constraints is an error that names it.
func New(cfg Config) (*Runtime, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	r := &Runtime{
		cfg: cfg, active: make(map[*plugin]bool), hooks: make(map[abi.Phase][]*hook),
		actions: make(map[string]*hook), effects: make(map[string]*hook),
	}
	r.pending, r.dead = pendingKey(&r.cfg.Limits), deadKey(&r.cfg.Limits)
	if err := r.register(); err != nil {
		return nil, err
	}
	for _, p := range hookPhases() {
		ordered, err := order(p, r.hooks[p])
		if err != nil {
			return nil, err
		}
		r.hooks[p] = ordered
	}
	return r, nil
}

func (c *Config) setDefaults() error {
	if c.HookTimeout < 0 {
		return fmt.Errorf("phases: Config.HookTimeout is %v, must not be negative", c.HookTimeout)
	}
	if c.Grace < 0 {
		return fmt.Errorf("phases: Config.Grace is %v, must not be negative", c.Grace)
	}
	if c.HandlerTime < 0 {
		return fmt.Errorf("phases: Config.HandlerTime is %v, must not be negative", c.HandlerTime)
	}
	c.HandlerTime = cmp.Or(c.HandlerTime, 30*time.Second)
	c.HookTimeout = cmp.Or(c.HookTimeout, 5*time.Second)
	c.Grace = cmp.Or(c.Grace, 250*time.Millisecond)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewID == nil {
		c.NewID = newID
	}
	c.Limits.setDefaults()
	return c.Limits.validate()
}

// PluginError is what is wrong with a plugin of a [Config].
type PluginError struct {
	// Field is Plugins or Builtins.
	Field string
	Index int
	Err   error
}

// Error implements error.
func (e *PluginError) Error() string {
	return fmt.Sprintf("phases: Config.%s[%d]: %v", e.Field, e.Index, e.Err)
}

// Unwrap returns Err.
func (e *PluginError) Unwrap() error { return e.Err }

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func (r *Runtime) register() error {
	names := make(map[string]bool)
	for i, impl := range r.cfg.Builtins {
		if err := r.registerOne(impl, names, true); err != nil {
			return &PluginError{Field: "Builtins", Index: i, Err: err}
		}
	}
	for i, impl := range r.cfg.Plugins {
		if err := r.registerOne(impl, names, false); err != nil {
			return &PluginError{Field: "Plugins", Index: i, Err: err}
		}
	}
	for _, name := range r.cfg.Active {
		if !names[name] {
			return fmt.Errorf("phases: Config.Active names %.80q, and there is no plugin of that name", name)
		}
	}
	for name := range r.cfg.Settings {
		if !names[name] {
			return fmt.Errorf("phases: Config.Settings names %.80q, and there is no plugin of that name", name)
		}
	}
	return nil
}

func (r *Runtime) registerOne(impl Plugin, names map[string]bool, builtin bool) error {
	if impl == nil {
		return errors.New("is nil")
	}
	p, err := newPlugin(impl, &r.cfg.Limits)
	if err != nil {
		return err
	}
	if names[p.name] {
		return fmt.Errorf("plugin %q: there are two plugins of that name; give one of them another", p.name)
	}
	names[p.name] = true
	if settings, ok := r.cfg.Settings[p.name]; ok {
		if p.settings, _, err = state.Clone(settings, r.cfg.Limits.MessageBytes); err != nil {
			return fmt.Errorf("plugin %q: Config.Settings: %w", p.name, err)
		}
	}
	r.add(p, builtin || len(r.cfg.Active) == 0 || slices.Contains(r.cfg.Active, p.name))
	return nil
}

// add adds a plugin. One that is not active keeps its keys and handlers.
func (r *Runtime) add(p *plugin, active bool) {
	r.plugins = append(r.plugins, p)
	r.active[p] = active
	for _, h := range p.actions {
		r.actions[h.name] = h
	}
	for _, h := range p.effects {
		r.effects[h.name] = h
	}
	if !active {
		return
	}
	for _, h := range p.hooks {
		r.hooks[h.Phase] = append(r.hooks[h.Phase], h)
	}
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

// hooksAt returns the hooks of a phase that may be fired.
func (r *Runtime) hooksAt(ctx context.Context, phase abi.Phase) ([]*hook, error) {
	hooks, known := r.hooks[phase]
	if !known {
		return nil, fmt.Errorf("phases: phase %.40q is not one of %s", phase, phaseNames(hookPhases()))
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("phases: %s: %w", phase, err)
	}
	return hooks, nil
}

// FailsClosed returns the first plugin with a hook at a phase whose failure ends the run, or nothing. A caller that cannot fire the phase
// has to act as if that hook had failed.
func (r *Runtime) FailsClosed(p abi.Phase) string {
	for _, h := range r.hooks[p] {
		if h.OnFailure == abi.FailRun {
			return h.plugin.name
		}
	}
	return ""
}
