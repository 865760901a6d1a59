package hook_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/phases"
)

// scripted is a plugin in Go.
type scripted struct {
	d  abi.Description
	fn func(e *abi.Event) (*abi.Reply, error)
	// wait is how long a call takes.
	wait func() time.Duration
}

func (s *scripted) Describe() abi.Description { return s.d }

func (s *scripted) OnPhase(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
	if s.wait != nil {
		select {
		case <-time.After(s.wait()):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.fn(e)
}

// plugin makes a plugin with one hook for each phase.
func plugin(name string, mode abi.Mode, fn func(e *abi.Event) (*abi.Reply, error), at ...abi.Phase) *scripted {
	d := abi.Description{Name: name, Version: "1", State: []abi.StateKey{{Name: "n", Scope: abi.ScopeThread}}}
	for _, p := range at {
		d.Hooks = append(d.Hooks, abi.Hook{Phase: p, Mode: mode, Messages: abi.ViewAll})
	}
	return &scripted{d: d, fn: fn}
}

func effects(list ...abi.Effect) *abi.Reply { return &abi.Reply{Effects: list} }

// blocks denies calls whose command has a word in it.
func blocks(name, word string) *scripted {
	return plugin(name, abi.ModeGate, func(e *abi.Event) (*abi.Reply, error) {
		if args, ok := e.Call.Arguments.(map[string]any); ok && contains(args["command"], word) {
			return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "no " + word}}, nil
		}
		return nil, nil
	}, abi.ToolGate)
}

type options struct {
	plugins []phases.Plugin
	edit    func(*hook.Config)
	program func(*hook.Program)
	timeout time.Duration
}

type bench struct {
	*hook.Engine

	t       testing.TB
	mu      sync.Mutex
	records []*hook.Record
	tickets *hook.Tickets
}

func programOf(tb testing.TB, timeout time.Duration, plugins ...phases.Plugin) *hook.Program {
	tb.Helper()
	trace := hook.NewTrace()
	r, err := phases.New(phases.Config{Plugins: plugins, Record: trace.Record, HookTimeout: timeout})
	if err != nil {
		tb.Fatal(err)
	}
	p := &hook.Program{Runtime: r, Trace: trace}
	for _, pl := range plugins {
		p.Plugins = append(p.Plugins, pl.Describe())
	}
	return p
}

func engine(tb testing.TB, o options) *bench {
	tb.Helper()
	p := programOf(tb, o.timeout, o.plugins...)
	if o.program != nil {
		o.program(p)
	}
	b := &bench{t: tb, tickets: hook.NewTickets(tb.TempDir())}
	cfg := hook.Config{Program: p, Tickets: b.tickets, Record: func(r *hook.Record) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.records = append(b.records, r)
	}}
	if o.edit != nil {
		o.edit(&cfg)
	}
	e, err := hook.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	b.Engine = e
	return b
}

// send handles one event and returns the output, raw and decoded.
func (b *bench) send(dialect, event string, fields map[string]any) (string, map[string]any) {
	b.t.Helper()
	return b.sendAs(dialect, event, true, fields)
}

func (b *bench) sendAs(dialect, event string, headless bool, fields map[string]any) (string, map[string]any) {
	b.t.Helper()
	in, err := json.Marshal(fields)
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := b.Handle(b.t.Context(), &hook.Request{Dialect: dialect, Event: event, Headless: headless, Stdin: in})
	if err != nil {
		b.t.Fatal(err)
	}
	var m map[string]any
	if out != "" {
		if err := json.Unmarshal([]byte(out), &m); err != nil {
			return out, nil
		}
	}
	return out, m
}

func (b *bench) last() *hook.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.records) == 0 {
		return &hook.Record{}
	}
	return b.records[len(b.records)-1]
}

// bash is a PreToolUse event of Claude Code or Codex.
func bash(id, command string) map[string]any {
	return map[string]any{
		"session_id": "s1", "cwd": "/src", "tool_name": "Bash", "tool_use_id": id, "prompt_id": "p1",
		"tool_input": map[string]any{"command": command, "description": "d", "timeout": 7},
	}
}

func at(m map[string]any, path ...string) any {
	var v any = m
	for _, p := range path {
		o, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = o[p]
	}
	return v
}
