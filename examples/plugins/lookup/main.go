// Command lookup is a guest that looks up the tickets which a conversation names, and
// puts the tracker's text next to the request to the model. It uses http with a
// secret, and a key-value space as its cache.
package main

import (
	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/plugin"
)

func init() { //nolint:gochecknoinits // a guest registers before the host calls it
	plugin.Register(plugin.Plugin{Description: description(), OnPhase: onPhase})
}

func main() {}

func description() mortise.Description {
	text := map[string]any{"type": "string", "minLength": int64(1)}
	return mortise.Description{
		Name:    "lookup",
		Version: "0.1.0",
		ABI:     mortise.VersionRange{Min: 1, Max: 1},
		Summary: "Looks up the tickets that a conversation names.",
		Hooks: []mortise.Hook{{
			Phase: mortise.BeforeInference, Mode: mortise.ModeTransform, Messages: mortise.ViewLast,
			OnFailure: mortise.FailIgnore,
		}},
		Capabilities: []mortise.Capability{
			{Name: mortise.CapabilityHTTP, Reason: "To ask the tracker for tickets."},
			{Name: mortise.CapabilityKV, Reason: "To ask for each ticket once.", Scope: []string{keyPrefix}},
			{Name: mortise.CapabilitySecrets, Reason: "To sign in at the tracker.", Scope: []string{defaultSecret}, Optional: true},
			{Name: mortise.CapabilityClock, Reason: "To forget answers after max_age_minutes.", Optional: true},
		},
		ConfigSchema: map[string]any{
			"type":                 "object",
			"required":             []any{"url"},
			"additionalProperties": false,
			"properties": map[string]any{
				"url":             map[string]any{"type": "string", "pattern": "^https?://[^?#]*/$"},
				"secret":          text,
				"anonymous":       map[string]any{"type": "boolean"},
				"limit":           map[string]any{"type": "integer", "minimum": int64(1), "maximum": int64(10)},
				"max_age_minutes": map[string]any{"type": "integer", "minimum": int64(1)},
			},
		},
	}
}
