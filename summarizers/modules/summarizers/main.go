// Command summarizers is the guest with the bundled summarizer policies.
package main

import (
	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/summarizer"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/extract"
)

func init() { //nolint:gochecknoinits // a guest registers before the host calls it
	summarizer.Register(summarizer.Summarizer{Description: description(), Summarize: summarize})
}

func main() {}

// summarize hands the request to the policy that it names.
func summarize(req *mortise.SummarizeRequest) (*mortise.Summary, error) {
	switch req.Policy {
	case "", extract.Policy:
		return extract.Summarize(req)
	}
	return nil, &unknownPolicyError{name: req.Policy}
}

// unknownPolicyError says which policy the module does not have.
type unknownPolicyError struct{ name string }

func (e *unknownPolicyError) Error() string {
	return "summarizers: policy " + e.name + ": unknown; this module knows " + extract.Policy
}

func description() mortise.Description {
	return mortise.Description{
		Name:     "summarizers",
		Version:  "0.1.0",
		ABI:      mortise.VersionRange{Min: 1, Max: 1},
		Summary:  "Deterministic summaries without a model: facts, files, commands and open items in fixed sections.",
		Policies: []string{extract.Policy},
		ConfigSchema: map[string]any{
			"type":                 "object",
			"additionalProperties": false,
			"properties": map[string]any{
				"bytes_per_token": map[string]any{"type": "number", "minimum": 1.0, "maximum": 8.0, "default": 3.6},
				"prose_cap":       map[string]any{"type": "integer", "minimum": int64(256), "default": int64(49152)},
				"result_cap":      map[string]any{"type": "integer", "minimum": int64(256), "default": int64(6144)},
				"total_cap":       map[string]any{"type": "integer", "minimum": int64(4096), "default": int64(2097152)},
			},
		},
	}
}
