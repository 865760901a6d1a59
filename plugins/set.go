package plugins

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/phases"
)

// Entry is one plugin as an operator configures it.
type Entry struct {
	// Name of this use of the module; the guest's own name when empty. Two
	// entries may use one module under two names, with two configs.
	Name string
	// Module says what to load. Its Name is set from the entry when empty.
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

// Status says what became of an entry.
type Status struct {
	Name    string    `json:"name"`
	Version string    `json:"version,omitempty"`
	Summary string    `json:"summary,omitempty"`
	State   State     `json:"state"`
	Reason  string    `json:"reason,omitempty"`
	Module  host.Info `json:"module,omitzero"`
}

// Set is a group of loaded plugins.
type Set struct {
	plugins []*Plugin
	modules []*host.Module
	status  []Status
}

// Load loads the entries in their order. When any of them fails, the error
// joins one sentence for each failure; the Set is returned all the same, holds
// what did load, and must be closed.
func Load(ctx context.Context, h *host.Host, entries []Entry) (*Set, error) {
	s := &Set{}
	var failures []error
	seen := make(map[string]bool, len(entries))
	for i, e := range entries {
		name := cmp.Or(e.Name, e.Module.Name, fmt.Sprintf("plugin %d", i+1))
		if e.Disabled {
			s.status = append(s.status, Status{Name: name, State: StateSkipped, Reason: "disabled in the config"})
			continue
		}
		status, err := s.load(ctx, h, e, seen)
		if err != nil {
			status.Name = cmp.Or(status.Name, name)
			status.State, status.Reason = StateFailed, err.Error()
			failures = append(failures, err)
		}
		s.status = append(s.status, status)
	}
	return s, errors.Join(failures...)
}

func (s *Set) load(ctx context.Context, h *host.Host, e Entry, seen map[string]bool) (Status, error) {
	spec := e.Module
	spec.Name = cmp.Or(spec.Name, e.Name)
	m, err := h.Load(ctx, spec)
	if err != nil {
		return Status{Name: e.Name}, err
	}
	status, err := s.admit(ctx, m, e, seen)
	if err != nil {
		// Nobody will call it, so it need not stay in memory.
		return status, errors.Join(err, m.Close(context.WithoutCancel(ctx)))
	}
	s.modules = append(s.modules, m)
	return status, nil
}

// admit makes a plugin of a module.
func (s *Set) admit(ctx context.Context, m *host.Module, e Entry, seen map[string]bool) (Status, error) {
	status := Status{Name: e.Name, Module: m.Info(), State: StateLoaded}
	g, err := guest.Open(ctx, m)
	if err != nil {
		return status, err
	}
	p := newPlugin(g, e)
	status.Name, status.Version, status.Summary = p.desc.Name, p.desc.Version, p.desc.Summary
	if seen[p.desc.Name] {
		return status, fmt.Errorf("plugins: %q: the name is taken by an earlier entry; give one of them another name", p.desc.Name)
	}
	if err := check(g, e); err != nil {
		return status, err
	}
	// What phases would refuse is refused here, where the entry can be named.
	if _, err := phases.New(phases.Config{Plugins: []phases.Plugin{p}}); err != nil {
		return status, fmt.Errorf("plugins: module %q: %w", g.Module(), err)
	}
	seen[p.desc.Name] = true
	s.plugins = append(s.plugins, p)
	return status, nil
}

func check(g *guest.Guest, e Entry) error {
	if d := g.Description(); len(d.Hooks)+len(d.Actions)+len(d.Effects) == 0 {
		return fmt.Errorf("plugins: module %q: describes no hooks, so it is not a phase plugin; check which module the config names", g.Module())
	}
	if err := g.Require(abi.ExportOnPhase); err != nil {
		return err
	}
	return g.CheckConfig(e.Config)
}

// Plugins returns the loaded plugins in the order of their entries.
func (s *Set) Plugins() []phases.Plugin {
	out := make([]phases.Plugin, len(s.plugins))
	for i, p := range s.plugins {
		out[i] = p
	}
	return out
}

// Status returns what became of each entry, in their order.
func (s *Set) Status() []Status { return s.status }

// Stats returns the counters of each loaded module, by the module's name.
func (s *Set) Stats() map[string]host.Stats {
	out := make(map[string]host.Stats, len(s.modules))
	for _, m := range s.modules {
		out[m.Name()] = m.Stats()
	}
	return out
}

// Close closes the modules. It waits for calls in flight until ctx is done.
func (s *Set) Close(ctx context.Context) error {
	var errs []error
	for _, m := range s.modules {
		errs = append(errs, m.Close(ctx))
	}
	return errors.Join(errs...)
}
