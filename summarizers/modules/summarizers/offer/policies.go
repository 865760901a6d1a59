package offer

import (
	"maps"

	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/anchored"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/gc"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/ledger"
)

// Ledger is package ledger as a policy.
func Ledger() Offer {
	return Offer{
		Name: ledger.Policy, Summary: "No model: the state of the conversation, as the host keeps it.", Summarize: ledger.Summarize, Properties: budget(),
		Ledger: true,
	}
}

// GC is package gc as a policy.
func GC() Offer {
	return Offer{
		Name: gc.Policy, Summary: "No model: masks outputs that are dead or can be read again, and declines where that is not enough.", Summarize: gc.Summarize,
		Properties: join(budget(), map[string]any{"alone": map[string]any{"type": "boolean", "default": false}}),
	}
}

// Anchored is package anchored as a policy.
func Anchored() Offer {
	return Offer{
		Name: anchored.Policy, Summary: "A model updates a structured summary section by section.", Summarize: anchored.Summarize,
		Properties: join(budget(), caps(), role()), Model: true,
	}
}

func budget() map[string]any {
	return map[string]any{"bytes_per_token": map[string]any{"type": "number", "minimum": 1.0, "maximum": 8.0, "default": 3.6}}
}

func caps() map[string]any {
	return map[string]any{"prose_cap": integer(256, 1<<20, 49152), "result_cap": integer(256, 1<<20, 6144)}
}

func role() map[string]any {
	return map[string]any{
		"role":         map[string]any{"type": "string", "minLength": int64(1), "maxLength": int64(64), "default": anchored.DefaultRole},
		"instructions": map[string]any{"type": "string", "maxLength": int64(4096)},
	}
}

func integer(least, most, def int64) map[string]any {
	return map[string]any{"type": "integer", "minimum": least, "maximum": most, "default": def}
}

func join(list ...map[string]any) map[string]any {
	out := map[string]any{}
	for _, m := range list {
		maps.Copy(out, m)
	}
	return out
}
