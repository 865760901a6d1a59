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
	return layered(append(slices.Clone(parts), noTools{})), nil
}

// LayerTools makes one of several whose lists may change and may name the same tool: the
// first that lists a name gets its calls. The last one gets calls that none lists, since it may
// have listed the tool when the model saw the list. Nil layers are left out.
func LayerTools(layers ...Tools) Tools {
	return layered(slices.DeleteFunc(slices.Clone(layers), func(t Tools) bool { return t == nil }))
}

type layered []Tools

func (l layered) Tools() []abi.Tool {
	var out []abi.Tool
	seen := make(map[string]bool)
	for _, layer := range l {
		for _, t := range layer.Tools() {
			if !seen[t.Name] {
				seen[t.Name] = true
				out = append(out, t)
			}
		}
	}
	return out
}

func (l layered) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	for i, layer := range l {
		if i == len(l)-1 || slices.ContainsFunc(layer.Tools(), func(t abi.Tool) bool { return t.Name == call.Name }) {
			return layer.CallTool(ctx, call)
		}
	}
	return noTools{}.CallTool(ctx, call)
}

// noTools are the tools of an agent without any.
type noTools struct{}

func (noTools) Tools() []abi.Tool { return nil }

func (noTools) CallTool(_ context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	return abi.ToolResult{}, fmt.Errorf("tool '%.80s' not found", call.Name)
}

// ToolsWhile lists tools only while a condition holds. A call that comes when it has ceased to
// hold is executed all the same.
func ToolsWhile(t Tools, while func() bool) Tools { return conditional{t, while} }

type conditional struct {
	own   Tools
	while func() bool
}

func (c conditional) Tools() []abi.Tool {
	if !c.while() {
		return nil
	}
	return c.own.Tools()
}

func (c conditional) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	return c.own.CallTool(ctx, call)
}
