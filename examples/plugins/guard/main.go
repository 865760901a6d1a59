// Command guard is a guest that blocks dangerous shell commands at the tool gate.
package main

import (
	"github.com/mortise-dev/mortise/examples/plugins/guard/rules"
	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/plugin"
)

func init() { //nolint:gochecknoinits // a guest registers before the host calls it
	plugin.Register(plugin.Plugin{Description: description(), OnPhase: onPhase})
}

func main() {}

func description() mortise.Description {
	list := map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	state := make([]mortise.StateKey, 0, len(rules.Rules()))
	for _, r := range rules.Rules() {
		state = append(state, mortise.StateKey{Name: r, Scope: mortise.ScopeThread, Merge: mortise.MergeCommutative})
	}
	return mortise.Description{
		Name:    "guard",
		Version: "0.1.0",
		ABI:     mortise.VersionRange{Min: 1, Max: 1},
		Summary: "Blocks shell commands that destroy, leak or publish.",
		Hooks: []mortise.Hook{{
			Phase: mortise.ToolGate, Mode: mortise.ModeGate, Messages: mortise.ViewNone,
			Priority: -100, OnFailure: mortise.FailRun,
		}},
		State: state,
		ConfigSchema: map[string]any{
			"type":                 "object",
			"additionalProperties": false,
			"properties": map[string]any{
				"allow": list, "disable": list, "enable": list, "branches": list, "tools": list, "arguments": list,
				"rules": map[string]any{"type": "array", "items": map[string]any{
					"type": "object", "required": []any{"command"}, "additionalProperties": false,
					"properties": map[string]any{
						"name": map[string]any{"type": "string"}, "command": map[string]any{"type": "string"},
						"flags": list, "argument_prefixes": list,
					},
				}},
			},
		},
	}
}
