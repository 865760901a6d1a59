package phases

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/mortise-dev/mortise/abi"
)

const (
	maxNameBytes = 64
	maxKeyBytes  = 128
)

// plugin is a registered plugin: the implementation and a checked copy of what
// it said of itself.
type plugin struct {
	impl  Plugin
	name  string
	hooks []*hook
	keys  map[string]*key // by short name
	list  []*key          // the same, by name
	stuck atomic.Int64    // abandoned calls that still run
}

// key is a declared state key.
type key struct {
	short     string
	full      string // "<plugin>/<short>"
	thread    bool
	exclusive bool
}

// hook is one subscription.
type hook struct {
	abi.Hook
	plugin *plugin
	index  int // in the plugin's description
	health health
}

// health counts the failures of a hook for quarantine.
type health struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

func newPlugin(impl Plugin) (*plugin, error) {
	d := impl.Describe()
	if !validName(d.Name) {
		return nil, fmt.Errorf("phases: plugin %.80q: the name must match ^[a-z0-9][a-z0-9._-]{0,63}$", d.Name)
	}
	p := &plugin{impl: impl, name: d.Name, keys: make(map[string]*key, len(d.State))}
	for i := range d.State {
		if err := p.addKey(&d.State[i]); err != nil {
			return nil, fmt.Errorf("phases: plugin %q: %w", d.Name, err)
		}
	}
	slices.SortFunc(p.list, func(a, b *key) int { return cmp.Compare(a.short, b.short) })
	for i := range d.Hooks {
		if err := p.addHook(i, d.Hooks[i]); err != nil {
			return nil, fmt.Errorf("phases: plugin %q: hook %d: %w", d.Name, i, err)
		}
	}
	return p, nil
}

func (p *plugin) addKey(s *abi.StateKey) error {
	if s.Name == "" || len(s.Name) > maxKeyBytes || strings.ContainsFunc(s.Name, unicode.IsControl) {
		return fmt.Errorf("state key %.140q: the name must have 1 to %d bytes and no control characters", s.Name, maxKeyBytes)
	}
	if p.keys[s.Name] != nil {
		return fmt.Errorf("state key %q is declared twice", s.Name)
	}
	k := &key{short: s.Name, full: p.name + "/" + s.Name}
	switch s.Scope {
	case "", abi.ScopeRun:
	case abi.ScopeThread:
		k.thread = true
	default:
		return fmt.Errorf("state key %q: scope %q is not one of run, thread", s.Name, s.Scope)
	}
	switch s.Merge {
	case "", abi.MergeExclusive:
		k.exclusive = true
	case abi.MergeCommutative:
	default:
		return fmt.Errorf("state key %q: merge %q is not one of exclusive, commutative", s.Name, s.Merge)
	}
	p.keys[s.Name] = k
	p.list = append(p.list, k)
	return nil
}

func (p *plugin) addHook(i int, h abi.Hook) error {
	if !slices.Contains(abi.Phases(), h.Phase) {
		return fmt.Errorf("phase %q is not one of the nine", h.Phase)
	}
	switch h.Mode {
	case abi.ModeObserve, abi.ModeTransform, abi.ModeGate:
	default:
		return fmt.Errorf("%s: mode %q is not one of observe, transform, gate", h.Phase, h.Mode)
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
	switch h.OnFailure {
	case abi.FailRun, abi.FailIgnore, abi.FailQuarantine:
	case "":
		h.OnFailure = abi.FailIgnore
		if h.Mode == abi.ModeGate {
			h.OnFailure = abi.FailRun
		}
	default:
		return fmt.Errorf("%s: on_failure %q is not one of fail, ignore, quarantine", h.Phase, h.OnFailure)
	}
	h.Before, h.After = slices.Clone(h.Before), slices.Clone(h.After)
	p.hooks = append(p.hooks, &hook{Hook: h, plugin: p, index: i})
	return nil
}

// quarantined says whether the hook is to be skipped, and until when.
func (h *hook) quarantined(now func() time.Time) (time.Time, bool) {
	if h.OnFailure != abi.FailQuarantine {
		return time.Time{}, false
	}
	h.health.mu.Lock()
	defer h.health.mu.Unlock()
	if h.health.until.IsZero() {
		return time.Time{}, false
	}
	return h.health.until, now().Before(h.health.until)
}

// succeeded ends a row of failures.
func (h *hook) succeeded() {
	if h.OnFailure != abi.FailQuarantine {
		return
	}
	h.health.mu.Lock()
	defer h.health.mu.Unlock()
	h.health.failures, h.health.until = 0, time.Time{}
}

// failed counts a failure and says whether the hook is now in quarantine. After
// a quarantine one failure is enough for the next, which is twice as long.
func (h *hook) failed(l *Limits, now time.Time) bool {
	if h.OnFailure != abi.FailQuarantine {
		return false
	}
	h.health.mu.Lock()
	defer h.health.mu.Unlock()
	h.health.failures++
	over := h.health.failures - l.QuarantineAfter
	if over < 0 {
		return false
	}
	wait := l.QuarantineMax
	if over < 32 && l.QuarantineBackOff<<over>>over == l.QuarantineBackOff {
		wait = min(wait, l.QuarantineBackOff<<over)
	}
	h.health.until = now.Add(wait)
	return true
}

func validName(s string) bool {
	if s == "" || len(s) > maxNameBytes || !alphanumeric(s[0]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
