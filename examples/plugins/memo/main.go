// Command memo is a guest that answers repeated calls of read-only tools from what they
// answered before, and offers a tool that lists what it knows and forgets on request.
package main

import (
	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/plugin"
)

func init() { //nolint:gochecknoinits // a guest registers before the host calls it
	plugin.Register(plugin.Plugin{Description: description(), OnPhase: onPhase, CallTool: callTool})
}

func main() {}

// State keys. The cache is exclusive: of two calls at the same time the later one is asked
// again with what the earlier one wrote.
const (
	keyCache = "cache"
	keyHits  = "hits"
)

func description() mortise.Description {
	return mortise.Description{
		Name:    "memo",
		Version: "0.1.0",
		ABI:     mortise.VersionRange{Min: 1, Max: 1},
		Summary: "Answers repeated calls of read-only tools from a cache.",
		Hooks: []mortise.Hook{
			{Phase: mortise.ToolGate, Mode: mortise.ModeGate, OnFailure: mortise.FailIgnore},
			{Phase: mortise.AfterToolExecute, Mode: mortise.ModeObserve},
		},
		State: []mortise.StateKey{
			{Name: keyCache, Scope: mortise.ScopeThread},
			{Name: keyHits, Scope: mortise.ScopeThread, Merge: mortise.MergeCommutative},
		},
		Tools: []mortise.Tool{{
			Name: toolName, Kind: mortise.ToolOther,
			Description: "Lists the tool calls whose results are remembered, or forgets them.",
			Parameters: map[string]any{
				"type": "object", "additionalProperties": false,
				"properties": map[string]any{
					"tool":   map[string]any{"type": "string", "description": "Only calls of this tool."},
					"forget": map[string]any{"type": "boolean", "description": "Forget the results, so that the tools run again."},
				},
			},
		}},
		ConfigSchema: map[string]any{
			"type":                 "object",
			"additionalProperties": false,
			"properties": map[string]any{
				"tools":           map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
				"max_age_minutes": map[string]any{"type": "integer", "minimum": int64(1)},
				"max_bytes":       map[string]any{"type": "integer", "minimum": int64(1024), "maximum": int64(maxBytes)},
			},
		},
	}
}
