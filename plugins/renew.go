package plugins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/host"
)

// Renew loads the entries into another Set, which takes over the plugin of each entry that has a
// name in kept: the plugin that s has under that name stays loaded, with its counters and what it
// was swapped to, and the entry is not read. Both Sets may be used until one of them is closed with
// [Set.CloseExcept]. Errors are those of [Load]; the new Set is not to be used then, and to be closed so, too.
func (s *Set) Renew(ctx context.Context, h *host.Host, entries []Entry, kept []string) (*Set, error) {
	next := &Set{host: h}
	var failures []error
	seen := make(map[string]bool, len(entries))
	modules := loadModules(ctx, h, entries, func(i int) bool { return kept[i] == "" && !entries[i].Disabled })
	for i, e := range entries {
		if kept[i] == "" {
			failures = append(failures, next.add(ctx, i, e, modules[i], seen))
			continue
		}
		at := slices.IndexFunc(s.plugins, func(p *Plugin) bool { return p.shape.Name == kept[i] })
		switch {
		case at < 0:
			failures = append(failures, fmt.Errorf("plugins: renew: there is no plugin %.80q", kept[i]))
		case seen[kept[i]]:
			failures = append(failures, taken(kept[i]))
		default:
			seen[kept[i]] = true
			next.plugins = append(next.plugins, s.plugins[at])
			next.entries = append(next.entries, outcome{plugin: s.plugins[at]})
		}
	}
	return next, errors.Join(failures...)
}

// add takes the module of an entry, and notes what became of it.
func (s *Set) add(ctx context.Context, i int, e Entry, l loaded, seen map[string]bool) error {
	name := cmp.Or(e.Name, e.Module.Name, fmt.Sprintf("plugin %d", i+1))
	if e.Disabled {
		s.entries = append(s.entries, outcome{status: Status{Name: name, State: StateSkipped, Reason: "disabled in the config"}})
		return nil
	}
	out, err := s.take(ctx, e, l, seen)
	if err != nil {
		out.status.Name = cmp.Or(out.status.Name, name)
		out.status.State, out.status.Reason, out.status.Err = StateFailed, err.Error(), err
	}
	s.entries = append(s.entries, out)
	return err
}

// CloseExcept closes the modules that the other Set does not use. A nil Set uses none.
func (s *Set) CloseExcept(ctx context.Context, other *Set) error {
	var errs []error
	for _, p := range s.plugins {
		if other != nil && slices.Contains(other.plugins, p) {
			continue
		}
		errs = append(errs, p.module.Close(ctx))
		p.runs.close()
	}
	return errors.Join(errs...)
}

// Shares reports whether both Sets have the same loaded plugin under a name.
func (s *Set) Shares(other *Set, name string) bool {
	return slices.ContainsFunc(s.plugins, func(p *Plugin) bool { return p.shape.Name == name && slices.Contains(other.plugins, p) })
}
