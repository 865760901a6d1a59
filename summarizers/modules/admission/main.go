// Command admission is the guest with the bundled admission policy.
package main

import (
	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/admission"
	"github.com/mortise-dev/mortise/summarizers/modules/admission/quota"
)

func init() { //nolint:gochecknoinits // a guest registers before the host calls it
	admission.Register(admission.Policy{Description: description(), Admit: admit})
}

func main() {}

// admit hands the request to the policy that it names.
func admit(req *mortise.AdmitRequest) (*mortise.Decision, error) {
	switch req.Policy {
	case "", quota.Policy:
		d := quota.Decide(req)
		return &d, nil
	}
	return nil, &unknownPolicyError{name: req.Policy}
}

// unknownPolicyError says which policy the module does not have.
type unknownPolicyError struct{ name string }

func (e *unknownPolicyError) Error() string {
	return "admission: policy " + e.name + ": unknown; this module knows " + quota.Policy
}

func description() mortise.Description {
	count := map[string]any{"type": "integer", "minimum": int64(1)}
	flag := map[string]any{"type": "boolean", "default": false}
	return mortise.Description{
		Name:     "admission",
		Version:  "0.1.0",
		ABI:      mortise.VersionRange{Min: 1, Max: 1},
		Summary:  "Admits a compaction by quota, cooldown and the load of memory, provider and queue.",
		Policies: []string{quota.Policy},
		ConfigSchema: map[string]any{
			"type":                 "object",
			"additionalProperties": false,
			"properties": map[string]any{
				"max_attempts":     count,
				"cooldown_ms":      map[string]any{"type": "integer", "minimum": int64(0)},
				"min_range_tokens": count,
				"ignore_memory":    flag,
				"ignore_provider":  flag,
				"ignore_queue":     flag,
				"retry_after_ms":   count,
			},
		},
	}
}
