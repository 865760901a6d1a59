// Command budget is a guest that bounds what a run may use: tokens, tool calls and time.
package main

import (
	"fmt"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/plugin"
)

func init() { //nolint:gochecknoinits // a guest registers before the host calls it
	plugin.Register(plugin.Plugin{Description: description(), OnPhase: onPhase, Validate: validate})
}

func main() {}

// State keys. Those of the run are gone with it.
const (
	keyTokens  = "tokens"
	keyCalls   = "calls"
	keyStarted = "started_ms"
	keyThread  = "thread_tokens"
)

func description() mortise.Description {
	limit := map[string]any{"type": "integer", "minimum": int64(1)}
	return mortise.Description{
		Name:    "budget",
		Version: "0.1.0",
		ABI:     mortise.VersionRange{Min: 1, Max: 1},
		Summary: "Bounds the tokens, tool calls and minutes of a run.",
		Hooks: []mortise.Hook{
			{Phase: mortise.RunStart, Mode: mortise.ModeObserve},
			{Phase: mortise.AfterInference, Mode: mortise.ModeGate},
			{Phase: mortise.ToolGate, Mode: mortise.ModeGate},
			{Phase: mortise.RunEnd, Mode: mortise.ModeObserve},
		},
		State: []mortise.StateKey{
			{Name: keyTokens, Scope: mortise.ScopeRun, Merge: mortise.MergeCommutative},
			{Name: keyCalls, Scope: mortise.ScopeRun, Merge: mortise.MergeCommutative},
			{Name: keyStarted, Scope: mortise.ScopeRun},
			{Name: keyThread, Scope: mortise.ScopeThread, Merge: mortise.MergeCommutative},
		},
		ConfigSchema: map[string]any{
			"type":                 "object",
			"additionalProperties": false,
			"properties": map[string]any{
				"max_tokens": limit, "max_thread_tokens": limit, "max_calls": limit, "max_minutes": limit,
				"on_calls": map[string]any{"enum": []any{"suspend", "block"}},
			},
		},
	}
}

// validate refuses limits of which one can never be reached.
func validate(config any) []mortise.Problem {
	run, thread := mortise.IntOr(config, "max_tokens", 0), mortise.IntOr(config, "max_thread_tokens", 0)
	if thread > 0 && run > thread {
		return []mortise.Problem{{
			Path:    "/max_tokens",
			Message: fmt.Sprintf("is %d, more than max_thread_tokens (%d), so it would never be reached; lower it or leave it out", run, thread),
		}}
	}
	return nil
}
