package agent

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

// JoinTools makes one of several, as of the program's own tools and those of its
// plugins. A name that is in two of them is an error. The lists are read once.
func JoinTools(parts ...Tools) (Tools, error) {
	out := &toolbox{owner: make(map[string]Tools)}
	for _, p := range parts {
		for _, t := range p.Tools() {
			if out.owner[t.Name] != nil {
				return nil, fmt.Errorf("agent: tool already registered: %.80s", t.Name)
			}
			out.owner[t.Name] = p
			out.list = append(out.list, t)
		}
	}
	return out, nil
}

type toolbox struct {
	list  []abi.Tool
	owner map[string]Tools
}

func (b *toolbox) Tools() []abi.Tool { return b.list }

func (b *toolbox) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	owner := b.owner[call.Name]
	if owner == nil {
		return abi.ToolResult{}, fmt.Errorf("tool '%.80s' not found", call.Name)
	}
	return owner.CallTool(ctx, call)
}
