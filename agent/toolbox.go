package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// JoinTools makes one of several, as of the program's own tools and those of its
// plugins. A name that is in two of them is an error. A part may change its list later:
// then the first part that lists a name has it.
func JoinTools(parts ...Tools) (Tools, error) {
	taken := make(map[string]bool)
	for _, p := range parts {
		for _, t := range p.Tools() {
			if taken[t.Name] {
				return nil, fmt.Errorf("agent: tool already registered: %.80s", t.Name)
			}
			taken[t.Name] = true
		}
	}
	return toolbox(slices.Clone(parts)), nil
}

type toolbox []Tools

func (b toolbox) Tools() []abi.Tool {
	var out []abi.Tool
	taken := make(map[string]bool)
	for _, p := range b {
		for _, t := range p.Tools() {
			if !taken[t.Name] {
				taken[t.Name] = true
				out = append(out, t)
			}
		}
	}
	return out
}

func (b toolbox) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	for _, p := range b {
		if slices.ContainsFunc(p.Tools(), func(t abi.Tool) bool { return t.Name == call.Name }) {
			return p.CallTool(ctx, call)
		}
	}
	return abi.ToolResult{}, fmt.Errorf("tool '%.80s' not found", call.Name)
}
