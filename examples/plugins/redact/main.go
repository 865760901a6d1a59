// Command redact is a guest that hides credentials in tool output before the
// conversation sees them.
package main

import (
	"github.com/mortise-dev/mortise/examples/plugins/redact/scrub"
	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/plugin"
)

func init() { //nolint:gochecknoinits // a guest registers before the host calls it
	plugin.Register(plugin.Plugin{Description: description(), OnPhase: onPhase})
}

func main() {}

func description() mortise.Description {
	rules := make([]any, 0, len(scrub.Rules()))
	state := make([]mortise.StateKey, 0, len(scrub.Rules()))
	for _, r := range scrub.Rules() {
		rules = append(rules, r)
		state = append(state, mortise.StateKey{Name: r, Scope: mortise.ScopeThread, Merge: mortise.MergeCommutative})
	}
	list := map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	return mortise.Description{
		Name:    "redact",
		Version: "0.1.0",
		ABI:     mortise.VersionRange{Min: 1, Max: 1},
		Summary: "Hides credentials in tool output before the conversation sees them.",
		Hooks: []mortise.Hook{{
			Phase: mortise.AfterToolExecute, Mode: mortise.ModeTransform, Messages: mortise.ViewNone,
			Priority: -100, OnFailure: mortise.FailRun,
		}},
		State: state,
		ConfigSchema: map[string]any{
			"type":                 "object",
			"additionalProperties": false,
			"properties": map[string]any{
				"words":   list,
				"allow":   list,
				"disable": map[string]any{"type": "array", "items": map[string]any{"type": "string", "enum": rules}},
				"mask":    map[string]any{"type": "string"},
			},
		},
	}
}
