package plugins

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/messages"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/phases"
)

// Plugin is a guest that answers on_phase. It implements phases.Plugin.
type Plugin struct {
	live   *guest.Live
	module *host.Module
	entry  Entry
	// shape is what the phase runtime was built on, so a swap has to keep it. It is set once,
	// when the entry was loaded.
	shape *abi.Description
	// timeout is that of the last spec, 0 when it has none.
	timeout atomic.Int64
	// runs are the instances of runs, for a guest that asks for them.
	runs runs
}

// openPlugin makes a plugin of a module.
func openPlugin(ctx context.Context, m *host.Module, e Entry) (*Plugin, error) {
	p := &Plugin{module: m, entry: e, runs: runs{module: m}}
	p.timeout.Store(int64(e.Module.Limits.Timeout))
	var err error
	if p.live, err = guest.NewLive(ctx, m, e.Module.Grants, p.admit); err != nil {
		return nil, err
	}
	desc := p.describe(p.live.Edition().Guest)
	p.shape = &desc
	return p, nil
}

// admit reports why a guest cannot serve as this plugin.
func (p *Plugin) admit(ctx context.Context, g *guest.Guest) error {
	d := g.Description()
	handlers := len(d.Hooks) + len(d.Actions) + len(d.Effects)
	if handlers+len(d.Tools) == 0 {
		return fmt.Errorf("plugins: module %q: describes no hooks, so it is not a phase plugin; check which module the config names", g.Module())
	}
	if handlers > 0 {
		if err := g.Require(abi.ExportOnPhase); err != nil {
			return err
		}
	}
	if err := g.ValidateConfig(ctx, p.entry.Config); err != nil {
		return err
	}
	if p.shape != nil {
		if err := p.succeed(g); err != nil {
			return err
		}
	}
	if len(d.Tools) > 0 {
		return g.Require(abi.ExportCallTool)
	}
	return nil
}

// succeed reports why a guest cannot replace the one in use.
func (p *Plugin) succeed(g *guest.Guest) error {
	before, now := p.live.Edition().Guest.Description().Name, g.Description().Name
	if before != now {
		return fmt.Errorf("plugins: module %q: %w: it calls itself %q, the plugin in use is %q", g.Module(), ErrShape, now, before)
	}
	desc := p.describe(g)
	if diff := differences(p.shape, &desc); diff != "" {
		return fmt.Errorf("plugins: module %q: %w: %s; load it when the program starts", g.Module(), ErrShape, diff)
	}
	return nil
}

// describe applies the operator's entry to the guest's description.
func (p *Plugin) describe(g *guest.Guest) abi.Description {
	desc := g.Description()
	if p.entry.Name != "" {
		desc.Name = p.entry.Name
	}
	desc.Hooks = append([]abi.Hook(nil), desc.Hooks...)
	for i := range desc.Hooks {
		if p.entry.Priority != nil {
			desc.Hooks[i].Priority = *p.entry.Priority
		}
		if p.entry.OnFailure != "" {
			desc.Hooks[i].OnFailure = p.entry.OnFailure
		}
	}
	return desc
}

// Describe returns the guest's description, under the operator's name
// and with the operator's priority and failure policy where those are given.
func (p *Plugin) Describe() abi.Description { return p.describe(p.live.Edition().Guest) }

// HookTimeout implements phases.Timed: Limits.Timeout of the spec that the plugin was loaded with, or swapped to,
// also when it is more than the phase runtime's own. Without one it is 0, and the phase runtime's holds.
func (p *Plugin) HookTimeout() time.Duration { return time.Duration(p.timeout.Load()) }

// OnPhase passes the event to the guest. The error is host.GuestError,
// host.TrapError, a decoding error, or that of ctx.
func (p *Plugin) OnPhase(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
	for {
		reply, err := p.attempt(ctx, e)
		if !guest.NotBegun(err) {
			return reply, err
		}
	}
}

// errUnfinished is a call whose goroutine ended in the middle of it (runtime.Goexit), as code of the embedder can have it.
var errUnfinished = errors.New("plugins: the call did not return")

// attempt makes a call on the guest in use now: on the instance of the run, if the guest has one for each run.
func (p *Plugin) attempt(ctx context.Context, e *abi.Event) (reply *abi.Reply, err error) {
	ed, err := p.live.Current(ctx)
	if err != nil {
		return nil, err
	}
	var on guest.Calls = ed.Generation
	if i := p.runs.open(ctx, ed, &e.Run); i != nil {
		on, err = i.session, errUnfinished
		defer func() { p.runs.done(i, err) }()
	}
	g, shown := ed.Guest, p.show(ed.Guest, e)
	if g.ReadsMore() {
		ctx = messages.WithRange(ctx, more(ctx, g, shown))
	}
	err = g.CallOn(ctx, on, abi.ExportOnPhase, shown, &reply)
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// RunEnded implements phases.Ender: it closes the instance of the run, if the guest has one for each run.
func (p *Plugin) RunEnded(run *abi.RunIdentity) { p.runs.end(run) }

// show is the event as the guest sees it.
func (p *Plugin) show(g *guest.Guest, e *abi.Event) *abi.Event {
	if p.entry.Config == nil && e.ABI == g.Version() {
		return e
	}
	event := *e
	event.ABI = g.Version()
	if p.entry.Config != nil {
		event.Config = p.entry.Config
	}
	return &event
}

// more lets the guest read messages beyond its view: an event that holds nothing
// but them.
func more(ctx context.Context, g *guest.Guest, e *abi.Event) messages.RangeFunc {
	all := phases.Conversation(ctx)
	return func(from, to uint32) ([]byte, error) {
		last := min(int64(to), int64(len(all)))
		first := min(int64(from), last)
		return g.Encode(&abi.Event{
			ABI: g.Version(), Phase: e.Phase, Run: e.Run, Step: e.Step,
			Messages: all[first:last], MessagesFrom: int(first), MessagesTotal: len(all),
		})
	}
}
