// Command index is a guest that keeps an index of what a conversation touched:
// files, commands, identifiers, URLs and errors.
package main

import (
	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/plugin"
)

func init() { //nolint:gochecknoinits // a guest registers before the host calls it
	plugin.Register(plugin.Plugin{Description: description(), OnPhase: onPhase})
}

func main() {}

// description declares the tables as exclusive: a count is read and written back,
// so two calls that end together must be counted one after the other. The totals
// only grow and are added up in any order.
func description() mortise.Description {
	limit := func(n int64) any {
		return map[string]any{"type": "integer", "minimum": int64(1), "maximum": int64(5000), "default": n}
	}
	d := mortise.Description{
		Name:    "index",
		Version: "0.1.0",
		ABI:     mortise.VersionRange{Min: 1, Max: 1},
		Summary: "Keeps an index of files, commands, identifiers, URLs and errors of a conversation.",
		ConfigSchema: map[string]any{
			"type":                 "object",
			"additionalProperties": false,
			"properties": map[string]any{
				"files": limit(500), "commands": limit(200), "identifiers": limit(500), "urls": limit(50), "errors": limit(50),
			},
		},
	}
	for _, p := range []mortise.Phase{mortise.AfterToolExecute, mortise.AfterInference, mortise.RunEnd} {
		d.Hooks = append(d.Hooks, mortise.Hook{Phase: p, Mode: mortise.ModeObserve, OnFailure: mortise.FailQuarantine})
	}
	for _, t := range tables() {
		d.State = append(d.State, mortise.StateKey{Name: t, Scope: mortise.ScopeThread, Merge: mortise.MergeExclusive})
	}
	for _, t := range []string{keyCalls, keyFailures} {
		d.State = append(d.State, mortise.StateKey{Name: t, Scope: mortise.ScopeThread, Merge: mortise.MergeCommutative})
	}
	return d
}
