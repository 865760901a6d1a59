// Package plugin registers a guest that hooks the phases of a run and answers
// tools. Import it in one module only with neither summarizer nor admission: a
// module is one of the three.
//
// # Concurrency
//
// Functions of a plugin are called one at a time, and keep nothing between calls.
//
// # Errors
//
// An error or a panic of a function becomes the error text of the call. The
// host then does what the hook's failure policy says.
package plugin

import (
	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/internal/rt"
)

// Plugin is a guest of this kind.
type Plugin struct {
	// Description is what the plugin is. A zero ABI range is filled in.
	Description mortise.Description
	// OnPhase answers an event. Nil, and a nil reply, are "no opinion".
	OnPhase func(*mortise.Event) (*mortise.Reply, error)
	// CallTool runs one of Description.Tools. A nil reply is an error.
	CallTool func(*mortise.ToolRequest) (*mortise.ToolReply, error)
	// Validate checks a config that fits Description.ConfigSchema, for what a schema cannot
	// express. It returns what is wrong with it; nothing accepts it.
	Validate func(config any) []mortise.Problem
}

var registered *Plugin

// Register sets the plugin of this module. Call it once, from init.
func Register(p Plugin) {
	if registered != nil {
		panic("plugin: Register was called twice")
	}
	registered = &p
}

// Call answers an export as the module would, natively: it decodes the input,
// calls the registered plugin and encodes what it answers.
func Call(export string, input []byte) ([]byte, error) {
	if registered == nil {
		return nil, errNotRegistered
	}
	return registered.Call(export, input)
}

// Call answers an export as a module with this plugin would.
func (p *Plugin) Call(export string, input []byte) ([]byte, error) {
	return rt.Call(p.handler(export), input)
}

const errNotRegistered = rt.Error("plugin: nothing is registered; call plugin.Register from init")

func (p *Plugin) handler(export string) rt.Handler {
	if p == nil {
		return func(string, *mortise.Encoder) error { return errNotRegistered }
	}
	switch export {
	case mortise.ExportDescribe:
		return p.describe
	case mortise.ExportOnPhase:
		return p.onPhase
	case mortise.ExportCallTool:
		return p.callTool
	case mortise.ExportValidate:
		return p.validate
	}
	return func(string, *mortise.Encoder) error { return rt.Error("plugin: no export " + export) }
}

func (p *Plugin) describe(_ string, out *mortise.Encoder) error {
	rt.Describe(p.Description, out)
	return nil
}

func (p *Plugin) onPhase(input string, out *mortise.Encoder) error {
	var reply *mortise.Reply
	if p.OnPhase != nil {
		event := newEvent()
		if err := mortise.UnmarshalString(input, event); err != nil {
			return err
		}
		var err error
		messages := event.Messages
		reply, err = p.OnPhase(event)
		if broken := messages.Err(); broken != nil {
			return broken
		}
		if err != nil {
			return err
		}
	}
	if reply == nil {
		reply = &mortise.Reply{}
	}
	reply.MarshalTo(out)
	return nil
}

func (p *Plugin) callTool(input string, out *mortise.Encoder) error {
	if p.CallTool == nil {
		return rt.Error("plugin: offers no tools")
	}
	var call mortise.ToolRequest
	if err := mortise.UnmarshalString(input, &call); err != nil {
		return err
	}
	reply, err := p.CallTool(&call)
	if err != nil {
		return err
	}
	if reply == nil {
		return rt.Error("plugin: CallTool returned neither a reply nor an error")
	}
	reply.MarshalTo(out)
	return nil
}

func (p *Plugin) validate(input string, out *mortise.Encoder) error {
	var request mortise.ValidateRequest
	if err := mortise.UnmarshalString(input, &request); err != nil {
		return err
	}
	var found mortise.Validation
	if p.Validate != nil {
		found.Problems = p.Validate(request.Config)
	}
	found.MarshalTo(out)
	return nil
}
