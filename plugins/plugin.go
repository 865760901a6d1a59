package plugins

import (
	"context"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/guest"
)

// Plugin is a guest that answers on_phase. It implements phases.Plugin.
type Plugin struct {
	guest  *guest.Guest
	desc   abi.Description
	config any
}

// newPlugin applies the operator's entry to what the guest says of itself.
func newPlugin(g *guest.Guest, e Entry) *Plugin {
	desc := g.Description()
	if e.Name != "" {
		desc.Name = e.Name
	}
	desc.Hooks = append([]abi.Hook(nil), desc.Hooks...)
	for i := range desc.Hooks {
		if e.Priority != nil {
			desc.Hooks[i].Priority = *e.Priority
		}
		if e.OnFailure != "" {
			desc.Hooks[i].OnFailure = e.OnFailure
		}
	}
	return &Plugin{guest: g, desc: desc, config: e.Config}
}

// Describe returns what the guest said of itself, under the operator's name
// and with the operator's priority and failure policy where those are given.
func (p *Plugin) Describe() abi.Description { return p.desc }

// OnPhase hands the event to the guest. The error is host.GuestError,
// host.TrapError, a decoding error, or that of ctx.
func (p *Plugin) OnPhase(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
	event := *e
	event.ABI = p.guest.Version()
	event.Config = p.config
	var reply abi.Reply
	if err := p.guest.Call(ctx, abi.ExportOnPhase, &event, &reply); err != nil {
		return nil, err
	}
	return &reply, nil
}
