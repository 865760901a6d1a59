package program

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/compaction/trial"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/plugins"
	"github.com/mortise-dev/mortise/serve"
	"github.com/mortise-dev/mortise/summarizers"
)

// maxHistory bounds the changes that are kept of each module.
const maxHistory = 100

// modules lets operators of mortise serve swap plugins and policies.
type modules struct {
	// now is what is loaded. It changes while mu is held.
	now atomic.Pointer[Parts]

	// turn is held by the one swap under way, which takes as long as its trial.
	turn sync.Mutex
	// mu guards the maps, and is held for moments: a run may wait for it, when its call rolls a module back.
	mu sync.Mutex
	// before are the specs that were in use before the latest swap, by module.
	before  map[string]host.Spec
	current map[string]host.Spec
	history map[string][]serve.Change
	// files are where modules came from that have files.
	files map[string]string
}

func newModules() *modules {
	return &modules{before: map[string]host.Spec{}, current: map[string]host.Spec{}, history: map[string][]serve.Change{}, files: map[string]string{}}
}

// keep remembers what a module was loaded from, with its bytes: its file may be another one when it is to be rolled back.
func (m *modules) keep(name string, spec host.Spec, digest string) {
	if spec.Wasm == nil && spec.Path != "" {
		m.files[name] = spec.Path
		if b, err := os.ReadFile(spec.Path); err == nil && HexSum(b) == digest {
			spec.Wasm = b
		}
	}
	m.current[name] = spec
}

// HexSum is the SHA-256 of b in hexadecimal.
func HexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Kinds of serve.Change.
const (
	changeSwapped    = "swapped"
	changeRefused    = "refused"
	changeRolledBack = "rolled_back"
)

func unknownModule(name string) error {
	return &serve.Refused{Reason: fmt.Sprintf("there is no module %.80q", name), Hint: "GET /v1/plugins and /v1/policies list them"}
}

// List implements serve.Modules.
func (m *modules) List(context.Context) []serve.Module {
	now := m.now.Load()
	used := map[string]Usage{}
	for _, u := range now.Usage() {
		used[u.Name] = u
	}
	status := now.Status()
	out := make([]serve.Module, 0, len(status))
	for i, s := range status {
		role := serve.RolePlugin
		if i >= len(now.Entries) {
			role = s.Name
		}
		g := used[s.Name]
		out = append(out, serve.Module{
			Name: s.Name, Role: role, Version: s.Version, State: string(s.State), LastError: s.Reason,
			SHA256: s.Module.SHA256, Engine: s.Module.Engine, Grants: s.Granted,
			Calls: g.Calls, Failures: g.Failures, Swaps: g.Swaps, RollBacks: g.Rollbacks,
		})
	}
	return out
}

// Swap implements serve.Modules.
func (m *modules) Swap(ctx context.Context, name string, wasm []byte) (serve.Swapped, error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	next, ok := m.spec(name)
	if !ok {
		return serve.Swapped{}, unknownModule(name)
	}
	digest := HexSum(wasm)
	next.Wasm, next.Path, next.SHA256 = wasm, "uploaded/"+digest[:12]+".wasm", digest
	out, err := m.swap(ctx, name, next, changeSwapped)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.files, name) // a reload leaves it alone
	}
	return out, err
}

// spec is what a module runs.
func (m *modules) spec(name string) (host.Spec, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	spec, ok := m.current[name]
	return spec, ok
}

// RollBack implements serve.Modules: it swaps to what was in use before the latest swap.
func (m *modules) RollBack(ctx context.Context, name string) (serve.Swapped, error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if _, ok := m.spec(name); !ok {
		return serve.Swapped{}, unknownModule(name)
	}
	m.mu.Lock()
	spec, ok := m.before[name]
	m.mu.Unlock()
	if !ok {
		return serve.Swapped{}, &serve.Refused{Reason: "it was not swapped since the program started", Hint: "upload the module that it should run"}
	}
	return m.swap(ctx, name, spec, changeRolledBack)
}

// swap tries a module and lets it take over. M.turn is held, so that swaps come one at a time.
func (m *modules) swap(ctx context.Context, name string, next host.Spec, kind string) (serve.Swapped, error) {
	change := serve.Change{Kind: kind, From: m.digest(name)}
	report, err := m.apply(ctx, name, next, kind == changeRolledBack)
	m.mu.Lock()
	defer m.mu.Unlock()
	change.At, change.To = time.Now().UTC(), m.digest(name)
	if err != nil {
		change.Kind, change.Reason = changeRefused, term.Clip(exit.Text(err), 1000)
		if next.Wasm != nil {
			change.To = HexSum(next.Wasm) // what was to take over
		}
		m.note(name, change)
		return serve.Swapped{}, &serve.Refused{Reason: change.Reason, Hint: "the module that was in use stays in use"}
	}
	if next.Wasm != nil && change.To != HexSum(next.Wasm) {
		return serve.Swapped{}, &serve.Refused{Reason: "it failed at once and was rolled back", Hint: "the history of the module has the reason"}
	}
	if m.before[name] = m.current[name]; kind == changeRolledBack {
		delete(m.before, name)
	}
	m.current[name] = next
	m.note(name, change)
	return serve.Swapped{From: change.From, To: change.To, Trial: report}, nil
}

// apply swaps a plugin or a policy. What was in use before needs no trial.
func (m *modules) apply(ctx context.Context, name string, next host.Spec, untried bool) (*trial.Report, error) {
	for _, l := range m.now.Load().Policies {
		if l.Name == name {
			return l.Policy.Swap(ctx, next, summarizers.SwapOptions{Untried: untried})
		}
	}
	for _, s := range m.now.Load().Set.Status() {
		if s.Name == name && s.State == plugins.StateLoaded {
			return nil, m.now.Load().Set.Swap(ctx, name, next, host.SwapOptions{})
		}
	}
	return nil, fmt.Errorf("%s is disabled: %w", name, errors.ErrUnsupported)
}

func (m *modules) digest(name string) string {
	for _, s := range m.now.Load().Status() {
		if s.Name == name {
			return s.Module.SHA256
		}
	}
	return ""
}

// note keeps a change. M.mu is held.
func (m *modules) note(name string, c serve.Change) {
	m.history[name] = append(m.history[name], c)
	m.history[name] = m.history[name][max(0, len(m.history[name])-maxHistory):]
}

// History implements serve.Modules.
func (m *modules) History(name string) []serve.Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]serve.Change(nil), m.history[name]...)
}

// rolledBack keeps what the host decided by itself.
func (m *modules) rolledBack(e host.SwapEvent) {
	if e.Kind != host.SwapRolledBack {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// It may come before swap has noted what it swapped, or after a trial of the next module has begun.
	if before, ok := m.before[e.Module]; ok && HexSum(m.current[e.Module].Wasm) == e.SHA256 {
		m.current[e.Module] = before
		delete(m.before, e.Module)
	}
	m.note(e.Module, serve.Change{
		At: time.Now().UTC(), Kind: changeRolledBack, From: e.SHA256, To: e.CurrentSHA256,
		Reason: fmt.Sprintf("%d of %d calls failed: %s", e.Failures, e.Calls, term.Clip(e.Reason, 500)),
	})
}
