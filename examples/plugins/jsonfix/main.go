// Command jsonfix is a guest that repairs the arguments of tool calls that are no valid
// JSON, before the gates judge the call.
package main

import (
	"github.com/mortise-dev/mortise/examples/plugins/jsonfix/repair"
	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/plugin"
)

func init() { //nolint:gochecknoinits // a guest registers before the host calls it
	plugin.Register(plugin.Plugin{Description: description(), OnPhase: onPhase})
}

func main() {}

// keyRepaired counts repaired calls, by the name of the tool.
const keyRepaired = "repaired"

func description() mortise.Description {
	return mortise.Description{
		Name:    "jsonfix",
		Version: "0.1.0",
		ABI:     mortise.VersionRange{Min: 1, Max: 1},
		Summary: "Repairs arguments of tool calls that are not valid JSON.",
		Hooks: []mortise.Hook{{
			Phase: mortise.ToolGate, Mode: mortise.ModeTransform, Priority: -200, OnFailure: mortise.FailIgnore,
		}},
		State: []mortise.StateKey{{Name: keyRepaired, Scope: mortise.ScopeThread, Merge: mortise.MergeCommutative}},
		ConfigSchema: map[string]any{
			"type":                 "object",
			"additionalProperties": false,
			"properties": map[string]any{
				"cut_off": map[string]any{"type": "boolean"},
			},
		},
	}
}

// onPhase rewrites arguments that are text. Those that are cut off are left alone unless the
// operator wants otherwise: half a file is worse than an error.
func onPhase(e *mortise.Event) (*mortise.Reply, error) {
	if e.Call == nil {
		return nil, nil
	}
	text, ok := e.Call.Arguments.(string)
	if !ok {
		return nil, nil
	}
	object, cut, err := repair.Object(text)
	if err != nil || cut && !mortise.BoolOr(e.Config, "cut_off", false) {
		return nil, nil //nolint:nilerr // what cannot be repaired is the model's to repeat
	}
	return &mortise.Reply{
		Updates: []mortise.Update{{Key: keyRepaired, Op: mortise.OpAdd, Value: int64(1)}},
		Effects: []mortise.Effect{{Type: mortise.EffectRewriteCall, Arguments: object, Note: "the arguments were not valid JSON"}},
	}, nil
}
