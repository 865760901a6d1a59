package plugins

import (
	"context"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/phases"
)

// Plugin is a guest that answers on_phase. It implements phases.Plugin.
type Plugin struct {
	guest  *guest.Guest
	desc   abi.Description
	config any
}

// more lets the guest read messages beyond its view: an event that holds nothing
// but them.
func (p *Plugin) more(ctx context.Context, e *abi.Event) host.RangeFunc {
	all := phases.Conversation(ctx)
	return func(from, to uint32) ([]byte, error) {
		last := min(int64(to), int64(len(all)))
		first := min(int64(from), last)
		return p.guest.Encode(&abi.Event{
			ABI: p.guest.Version(), Phase: e.Phase, Run: e.Run, Step: e.Step,
			Messages: all[first:last], MessagesFrom: int(first), MessagesTotal: len(all),
		})
	}
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
	if p.config != nil {
		event.Config = p.config
	}
	ctx = host.WithRange(ctx, p.more(ctx, &event))
	var reply abi.Reply
	if err := p.guest.Call(ctx, abi.ExportOnPhase, &event, &reply); err != nil {
		return nil, err
	}
	return &reply, nil
}
