package mcp

import (
	"context"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
)

// Of returns the tools of some servers only, by the servers' names. Without names it returns those of all.
func (s *Servers) Of(servers ...string) agent.Tools {
	if len(servers) == 0 {
		return s
	}
	return some{s, servers}
}

type some struct {
	all     *Servers
	servers []string
}

func (o some) has(t *tool) bool { return t != nil && slices.Contains(o.servers, t.server.cfg.Name) }

// Tools implements agent.Tools.
func (o some) Tools() []abi.Tool {
	now := o.all.listed.Load()
	return slices.DeleteFunc(slices.Clone(now.tools), func(t abi.Tool) bool { return !o.has(now.byName[t.Name]) })
}

// CallTool implements agent.Tools.
func (o some) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	if t := o.all.listed.Load().byName[call.Name]; t != nil && !o.has(t) {
		return abi.ToolResult{CallID: call.ID, ToolName: call.Name, Status: abi.ToolError, Message: "the tool is not offered to this agent"}, nil
	}
	return o.all.CallTool(ctx, call)
}
