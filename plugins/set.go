package plugins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/messages"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/phases"
)

// Entry is one plugin as an operator configures it.
type Entry struct {
	// Name of this use of the module; the guest's own name when empty. Two
	// entries may use one module under two names, with two configs.
	Name string
	// Module is what to load. Its Name is set from the entry when empty.
	Module host.Spec
	// Config is handed to the guest with each event, after it was checked
	// against the guest's schema.
	Config any
	// Disabled entries are not loaded and are reported as skipped.
	Disabled bool
	// Priority and OnFailure override what the guest says, for all its hooks.
	Priority  *int
	OnFailure abi.FailurePolicy
}

// State is how an entry ended.
type State string

// States of an entry.
const (
	StateLoaded  State = "loaded"
	StateSkipped State = "skipped"
	StateFailed  State = "failed"
)

// Status is the outcome of an entry.
type Status struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Summary string `json:"summary,omitempty"`
	State   State  `json:"state"`
	Reason  string `json:"reason,omitempty"`
	// Err is the error of an entry that failed, whose text is Reason.
	Err    error     `json:"-"`
	Module host.Info `json:"module,omitzero"`
	// Granted is what the operator granted.
	Granted []string `json:"granted,omitempty"`
	// Notes compare that with what the plugin asks for: sentences whose subject is
	// the plugin.
	Notes []string `json:"notes,omitempty"`
}

// Set is a group of loaded plugins.
type Set struct {
	host    *host.Host
	plugins []*Plugin
	entries []outcome
}

// outcome is what became of an entry: a plugin, or a status that does not change.
type outcome struct {
	plugin *Plugin
	status Status
}

// Load loads the entries, some at once, into a Set that has them in their order. When any of them fails, the error
// joins one sentence for each failure; the Set is returned all the same, holds
// what did load, and must be closed.
func Load(ctx context.Context, h *host.Host, entries []Entry) (*Set, error) {
	return (&Set{}).Renew(ctx, h, entries, make([]string, len(entries)))
}

// loaded is a module, or why there is none.
type loaded struct {
	module *host.Module
	err    error
}

// loadsAtOnce is how many modules are loaded at a time: one that is not in the cache takes all processors by itself, and much memory.
const loadsAtOnce = 4

// loadModules loads those of the entries that are chosen.
func loadModules(ctx context.Context, h *host.Host, entries []Entry, chosen func(int) bool) []loaded {
	out := make([]loaded, len(entries))
	places := make(chan struct{}, loadsAtOnce)
	var all sync.WaitGroup
	for i := range entries {
		if !chosen(i) {
			continue
		}
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			spec := entries[i].Module
			spec.Name = cmp.Or(spec.Name, entries[i].Name)
			m, err := h.Load(ctx, granting(spec))
			if err != nil {
				err = guest.Explain(ctx, h, spec, err)
			}
			out[i] = loaded{m, err}
		})
	}
	all.Wait()
	return out
}

// take makes a plugin of a module that was loaded.
func (s *Set) take(ctx context.Context, e Entry, l loaded, seen map[string]bool) (outcome, error) {
	if l.err != nil {
		return outcome{status: Status{Name: e.Name}}, l.err
	}
	m := l.module
	p, status, err := admit(ctx, m, e, seen)
	if err != nil {
		// No run will call it, so it need not stay in memory.
		return outcome{status: status}, errors.Join(err, m.Close(context.WithoutCancel(ctx)))
	}
	s.plugins = append(s.plugins, p)
	return outcome{plugin: p}, nil
}

// admit makes a plugin of a module.
func admit(ctx context.Context, m *host.Module, e Entry, seen map[string]bool) (*Plugin, Status, error) {
	p, err := openPlugin(ctx, m, e)
	if err != nil {
		return nil, Status{Name: e.Name, Module: m.Info()}, err
	}
	status := p.status()
	if seen[p.shape.Name] {
		return nil, status, taken(p.shape.Name)
	}
	// What phases would refuse is refused here, where the entry can be named.
	if _, err := phases.New(phases.Config{Plugins: []phases.Plugin{p}}); err != nil {
		if bad, ok := errors.AsType[*phases.PluginError](err); ok {
			err = bad.Err
		}
		return nil, status, fmt.Errorf("plugins: module %q: %w", m.Name(), err)
	}
	seen[p.shape.Name] = true
	return p, status, nil
}

func taken(name string) error {
	return fmt.Errorf("plugins: %q: the name is taken by an earlier entry; give one of them another name", name)
}

// status returns the plugin's status, which a swap changes.
func (p *Plugin) status() Status {
	e := p.live.Edition()
	d := p.describe(e.Guest)
	return Status{
		Name: d.Name, Version: d.Version, Summary: d.Summary, State: StateLoaded,
		Module: e.Generation.Info(), Granted: slices.Clone(e.Access.Granted), Notes: slices.Clone(e.Access.Notes),
	}
}

// Plugins returns the loaded plugins in the order of their entries.
func (s *Set) Plugins() []phases.Plugin {
	out := make([]phases.Plugin, len(s.plugins))
	for i, p := range s.plugins {
		out[i] = p
	}
	return out
}

// Status returns what became of each entry, in their order, and what the loaded ones
// are now.
func (s *Set) Status() []Status {
	out := make([]Status, len(s.entries))
	for i, e := range s.entries {
		out[i] = e.status
		if e.plugin != nil {
			out[i] = e.plugin.status()
			out[i].Notes = append(out[i].Notes, s.strangers(e.plugin)...)
		}
	}
	return out
}

// strangers notes the plugins that hooks name in before and after and that are not loaded.
func (s *Set) strangers(p *Plugin) []string {
	var notes []string
	for i := range p.shape.Hooks {
		h := &p.shape.Hooks[i]
		for _, order := range []struct {
			word  string
			names []string
		}{{"before", h.Before}, {"after", h.After}} {
			for _, name := range order.names {
				if !slices.ContainsFunc(s.plugins, func(o *Plugin) bool { return o.shape.Name == name }) {
					notes = append(notes, fmt.Sprintf("has to run %s %.64q at %s, and no plugin of that name is loaded", order.word, name, h.Phase))
				}
			}
		}
	}
	return notes
}

// Swap puts another binary, or another spec, in the place of a plugin's, while runs use
// it. The plugin keeps its name, config, priority and failure policy. Calls in progress end on the binary
// before; new ones go to the new binary, in the contract version and encoding that it
// speaks. See host.Module.Swap for probes, the watch and roll-back.
//
// A binary is refused, and the one in use continues, when it does not load, does not
// accept the config, asks for what spec.Grants does not hold, or differs in what the
// phase runtime was built on: [ErrShape]. The error is that of host.Module.Swap.
func (s *Set) Swap(ctx context.Context, name string, spec host.Spec, opts host.SwapOptions) error {
	names := make([]string, len(s.plugins))
	for i, p := range s.plugins {
		names[i] = p.shape.Name
		if names[i] != name {
			continue
		}
		spec.Name = p.module.Name()
		if err := p.live.Swap(ctx, swapping(spec), opts); err != nil {
			return guest.Explain(ctx, s.host, spec, err)
		}
		p.timeout.Store(int64(spec.Limits.Timeout))
		return nil
	}
	return fmt.Errorf("plugins: swap %.80q: there is no plugin of that name; there are: %s", name, strings.Join(names, ", "))
}

// Stats returns the counters of each loaded module, by the module's name.
func (s *Set) Stats() map[string]host.Stats {
	out := make(map[string]host.Stats, len(s.plugins))
	for _, p := range s.plugins {
		out[p.module.Name()] = p.module.Stats()
	}
	return out
}

// Close closes the modules. It waits for calls in flight until ctx is done.
func (s *Set) Close(ctx context.Context) error { return s.CloseExcept(ctx, nil) }

// granting lets a plugin read the messages of its event.
func granting(spec host.Spec) host.Spec {
	if _, granted := spec.Grants.Capability("messages").(messages.Grant); !granted {
		spec.Grants.Capabilities = append(slices.Clone(spec.Grants.Capabilities), messages.Grant{})
	}
	return spec
}

// swapping is granting for a swap. A spec that names only a binary keeps what was granted before.
func swapping(spec host.Spec) host.Spec {
	if spec.OnlyBinary() {
		return spec
	}
	return granting(spec)
}
