package replaycmd

import (
	"context"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/plugins"
)

// toolbox is what a replayed model may call. A tool that a plugin registers is the
// plugin's: it executes the recorded calls of that name too, and the recording's
// result is left out. All others are answered from the recording.
type toolbox struct {
	recorded agent.Tools
	plugins  *plugins.Tools
	told     func(ToolReport)
}

// Tools lists those of the plugins, and then those of the recording.
func (b *toolbox) Tools() []abi.Tool {
	out := b.plugins.Tools()
	for _, t := range b.recorded.Tools() {
		if b.plugins.Owner(t.Name) == "" {
			out = append(out, t)
		}
	}
	return out
}

// CallTool executes a call, or finds its result in the recording.
func (b *toolbox) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	owner := b.plugins.Owner(call.Name)
	if owner == "" {
		return b.recorded.CallTool(ctx, call)
	}
	result, err := b.plugins.CallTool(ctx, call)
	r := ToolReport{Plugin: owner, Tool: call.Name, Calls: 1}
	if err != nil || result.Status == abi.ToolError {
		r.Failed = 1
	}
	b.told(r)
	return result, err
}
