package program

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/plugins"
	"github.com/mortise-dev/mortise/serve"
)

// loaded are the digests of the modules that are loaded, by name.
func (p *Parts) loaded() map[string]string {
	out := map[string]string{}
	for _, s := range p.Status() {
		if s.State == plugins.StateLoaded {
			out[s.Name] = s.Module.SHA256
		}
	}
	return out
}

// has reports whether a plugin or policy is the same in others.
func (p *Parts) has(name string, other *Parts) bool {
	for i, l := range p.Policies {
		if l.Name == name {
			return i < len(other.Policies) && other.Policies[i].Policy == l.Policy
		}
	}
	return p.Set.Shares(other.Set, name)
}

// refresh swaps modules that next takes over and whose files have changed: all of them, or none after
// an error. Undo takes the swaps back.
func (m *modules) refresh(ctx context.Context, next *Parts) (swapped []string, undo func(), err error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	undo = func() {
		for _, name := range swapped {
			m.mu.Lock()
			before := m.before[name]
			m.mu.Unlock()
			_, backErr := m.swap(context.WithoutCancel(ctx), name, before, changeRolledBack)
			err = errors.Join(err, backErr)
		}
	}
	m.mu.Lock()
	files := maps.Clone(m.files)
	m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		b, readErr := os.ReadFile(files[name])
		if !m.now.Load().has(name, next) || readErr == nil && HexSum(b) == m.digest(name) {
			continue
		}
		to, _ := m.spec(name)
		to.Wasm, to.Path = b, files[name]
		if readErr == nil {
			_, readErr = m.swap(ctx, name, to, changeSwapped)
		}
		if readErr != nil {
			err = fmt.Errorf("%s: %w", name, readErr)
			undo()
			return nil, nil, err
		}
		swapped = append(swapped, name)
	}
	return swapped, func() { m.turn.Lock(); defer m.turn.Unlock(); undo() }, nil
}

// adopt makes the parts the ones that are listed and swapped, and notes what that changes.
func (m *modules) adopt(next *Parts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, before := m.now.Load(), map[string]string{}
	if was != nil {
		before = was.loaded()
	}
	digests := next.loaded()
	for name := range before {
		if _, there := digests[name]; !there {
			m.forget(name)
		}
	}
	m.now.Store(next)
	adopt := func(name string, keep func()) {
		if was != nil && was.has(name, next) {
			return
		}
		m.forget(name)
		keep()
		if was != nil {
			m.note(name, serve.Change{At: time.Now().UTC(), Kind: changeSwapped, From: before[name], To: digests[name], Reason: "the config has changed"})
		}
	}
	for i, s := range next.Set.Status() {
		if s.State != plugins.StateLoaded {
			m.forget(s.Name)
			m.current[s.Name] = host.Spec{} // it is known, and cannot be swapped
			continue
		}
		adopt(s.Name, func() { m.keep(s.Name, next.Entries[i].Module, s.Module.SHA256) })
	}
	for _, l := range next.Policies {
		adopt(l.Name, func() { m.keep(l.Name, l.Spec, l.Policy.Info().SHA256) })
	}
}

// forget drops what is known of a module besides its history. M.mu is held.
func (m *modules) forget(name string) {
	delete(m.before, name)
	delete(m.current, name)
	delete(m.files, name)
}
