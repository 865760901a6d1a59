package phases

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// maxKeyBytes bounds the name of a state key, an action or an effect.
const maxKeyBytes = 128

// plugin is a registered plugin: the implementation and a checked copy of what
// it said of itself.
type plugin struct {
	impl     Plugin
	name     string
	settings any
	hooks    []*hook
	actions  []*hook
	effects  []*hook
	keys     map[string]key // by short name
	list     []key          // the same, by name
	stuck    atomic.Int64   // abandoned calls that still run
	timed    Timed          // nil if the plugin is not
	stats    counters
}

// timeout is how long a call may take, otherwise if the plugin has no limit of its own.
func (p *plugin) timeout(otherwise time.Duration) time.Duration {
	if p.timed != nil {
		if d := p.timed.HookTimeout(); d > 0 {
			return d
		}
	}
	return otherwise
}

// key is a declared state key: Name is "<plugin>/<short>".
type key struct {
	*state.Key

	short string
}

// hookKind returns the kind of a hook's answer.
type hookKind int

const (
	phaseHook hookKind = iota
	actionHandler
	effectHandler
	activator
	toolHandler
)

// hook is one subscription, or the handler of an action or effect. Of a handler
// only mode and failure policy are set.
type hook struct {
	abi.Hook
	kind   hookKind
	plugin *plugin
	index  int // in the plugin's description
	answer func(context.Context, *abi.Event) (*abi.Reply, error)
	// name is the full name of a handler, public lets others ask for it.
	name   string
	public bool
	health health
}

func newPlugin(impl Plugin, l *Limits) (*plugin, error) {
	d := impl.Describe()
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`).MatchString(d.Name) {
		return nil, fmt.Errorf("plugin %.80q: the name must match ^[a-z0-9][a-z0-9._-]{0,63}$", d.Name)
	}
	p := &plugin{impl: impl, name: d.Name, keys: make(map[string]key, len(d.State))}
	p.timed, _ = impl.(Timed)
	var native map[string]state.Native
	if n, ok := impl.(NativeState); ok {
		native = n.NativeState()
	}
	for i := range d.State {
		if err := p.addKey(&d.State[i], native[d.State[i].Name], l); err != nil {
			return nil, fmt.Errorf("plugin %q: %w", d.Name, err)
		}
	}
	for name := range native {
		if _, ok := p.keys[name]; !ok {
			return nil, fmt.Errorf("plugin %q: NativeState names the key %.140q, which the description does not declare", d.Name, name)
		}
	}
	slices.SortFunc(p.list, func(a, b key) int { return cmp.Compare(a.short, b.short) })
	for i := range d.Hooks {
		if err := p.addHook(i, d.Hooks[i]); err != nil {
			return nil, fmt.Errorf("plugin %q: hook %d: %w", d.Name, i, err)
		}
	}
	var err error
	if p.actions, err = p.handlers(actionHandler, "action", d.Actions); err != nil {
		return nil, err
	}
	p.effects, err = p.handlers(effectHandler, "effect", d.Effects)
	return p, err
}

func (p *plugin) addKey(s *abi.StateKey, native state.Native, l *Limits) error {
	if err := checkName("state key", s.Name); err != nil {
		return err
	}
	if _, ok := p.keys[s.Name]; ok {
		return fmt.Errorf("state key %q is declared twice", s.Name)
	}
	switch s.Scope {
	case "", abi.ScopeRun, abi.ScopeThread:
	default:
		return fmt.Errorf("state key %q: scope %q is not one of run, thread", s.Name, s.Scope)
	}
	switch s.Merge {
	case "", abi.MergeExclusive, abi.MergeCommutative:
	default:
		return fmt.Errorf("state key %q: merge %q is not one of exclusive, commutative", s.Name, s.Merge)
	}
	k := key{short: s.Name, Key: &state.Key{
		Name: p.name + "/" + s.Name, Scope: s.Scope, Merge: s.Merge, Limit: l.StateValueBytes, Native: native,
	}}
	p.keys[s.Name] = k
	p.list = append(p.list, k)
	return nil
}

func checkName(what, name string) error {
	if name == "" || len(name) > maxKeyBytes || strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("%s %.140q: the name must have 1 to %d bytes and no control characters", what, name, maxKeyBytes)
	}
	return nil
}

// handlers checks the actions or effects that a plugin executes.
func (p *plugin) handlers(kind hookKind, what string, list []abi.Handler) ([]*hook, error) {
	var out []*hook
	for i := range list {
		d := &list[i]
		if err := checkName(what, d.Name); err != nil {
			return nil, fmt.Errorf("plugin %q: %w", p.name, err)
		}
		h := &hook{kind: kind, plugin: p, answer: p.impl.OnPhase, name: p.name + "/" + d.Name, public: d.Public}
		if slices.ContainsFunc(out, func(o *hook) bool { return o.name == h.name }) {
			return nil, fmt.Errorf("plugin %q: %s handler already registered: %s", p.name, what, d.Name)
		}
		h.Mode, h.OnFailure = cmp.Or(d.Mode, abi.ModeObserve), cmp.Or(d.OnFailure, abi.FailIgnore)
		if err := checkPolicy(h.Mode, h.OnFailure); err != nil {
			return nil, fmt.Errorf("plugin %q: %s %q: %w", p.name, what, d.Name, err)
		}
		out = append(out, h)
	}
	return out, nil
}

func checkPolicy(m abi.Mode, f abi.FailurePolicy) error {
	switch m {
	case abi.ModeObserve, abi.ModeTransform, abi.ModeGate:
	default:
		return fmt.Errorf("mode %q is not one of observe, transform, gate", m)
	}
	switch f {
	case abi.FailRun, abi.FailIgnore, abi.FailQuarantine:
		return nil
	default:
		return fmt.Errorf("on_failure %q is not one of fail, ignore, quarantine", f)
	}
}

func (p *plugin) addHook(i int, h abi.Hook) error {
	if all := hookPhases(); !slices.Contains(all, h.Phase) {
		return fmt.Errorf("phase %.40q is not one of %s", h.Phase, phaseNames(all))
	}
	switch h.Messages {
	case "", abi.ViewNone, abi.ViewLast, abi.ViewDelta, abi.ViewAll:
	case abi.ViewWindow:
		if h.Window < 1 {
			return fmt.Errorf("%s: the view window needs a window of at least 1, not %d", h.Phase, h.Window)
		}
	default:
		return fmt.Errorf("%s: messages %q is not one of none, last, delta, window, all", h.Phase, h.Messages)
	}
	if err := checkInclude(&h); err != nil {
		return fmt.Errorf("%s: %w", h.Phase, err)
	}
	if h.OnFailure == "" {
		h.OnFailure = abi.FailIgnore
		if h.Mode == abi.ModeGate {
			h.OnFailure = abi.FailRun
		}
	}
	if err := checkPolicy(h.Mode, h.OnFailure); err != nil {
		return fmt.Errorf("%s: %w", h.Phase, err)
	}
	h.Before, h.After, h.Include = slices.Clone(h.Before), slices.Clone(h.After), slices.Clone(h.Include)
	p.hooks = append(p.hooks, &hook{Hook: h, plugin: p, index: i, answer: p.impl.OnPhase})
	return nil
}

// checkInclude refuses what no event of the hook would hold.
func checkInclude(h *abi.Hook) error {
	for _, name := range h.Include {
		switch {
		case name != abi.IncludeRequest && name != abi.IncludeSystem:
			return fmt.Errorf("include %.40q is not one of %s, %s", name, abi.IncludeRequest, abi.IncludeSystem)
		case h.Phase != abi.BeforeInference:
			return fmt.Errorf("include %q is for %s, where there is a request", name, abi.BeforeInference)
		}
	}
	return nil
}
