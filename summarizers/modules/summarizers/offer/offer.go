// Package offer describes each of the bundled summarizer policies, for a guest that holds
// all of them and for guests that hold one.
//
// # Concurrency
//
// All functions are pure.
//
// # Errors
//
// A guest answers a request for a policy that it does not have with an error that names those
// it has.
package offer

import (
	"maps"
	"strings"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/summarizer"
)

// Version of the policies.
const Version = "0.2.0"

// Offer is a policy.
type Offer struct {
	Name, Summary string
	// Properties are those of the JSON Schema of its config.
	Properties map[string]any
	// Model is set when the policy needs a model, Ledger when a ledger is all that it reads.
	Model     bool
	Ledger    bool
	Summarize func(*mortise.SummarizeRequest) (*mortise.Summary, error)
}

// Guest is a guest that knows the policies; the first is its default.
func Guest(name, summary string, offers ...Offer) summarizer.Summarizer {
	d := mortise.Description{
		Name: name, Version: Version, ABI: mortise.VersionRange{Min: 1, Max: 1}, Summary: summary,
	}
	properties := map[string]any{}
	models := 0
	for _, o := range offers {
		d.Policies = append(d.Policies, o.Name)
		if o.Ledger {
			d.LedgerPolicies = append(d.LedgerPolicies, o.Name)
		}
		maps.Copy(properties, o.Properties)
		if o.Model {
			models++
		}
	}
	d.ConfigSchema = map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if models > 0 {
		d.Capabilities = []mortise.Capability{{
			Name: mortise.CapabilityModel, Optional: models < len(offers), Reason: "To let a model update the summary.",
		}}
	}
	return summarizer.Summarizer{Description: d, Summarize: func(req *mortise.SummarizeRequest) (*mortise.Summary, error) {
		for _, o := range offers {
			if req.Policy == o.Name || req.Policy == "" {
				return o.Summarize(req)
			}
		}
		return nil, &unknownError{guest: name, policy: req.Policy, known: d.Policies}
	}}
}

// Alone is a guest with one policy.
func Alone(o Offer) summarizer.Summarizer { return Guest(o.Name, o.Summary, o) }

// unknownError names the policy that the guest does not have.
type unknownError struct {
	guest, policy string
	known         []string
}

func (e *unknownError) Error() string {
	return e.guest + ": policy " + e.policy + ": unknown; this module knows " + strings.Join(e.known, ", ")
}
