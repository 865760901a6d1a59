package links_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/internal/cli/links"
	"github.com/mortise-dev/mortise/internal/config"
)

// TestAll_schema: the schema of the config names the providers and engines that there are.
func TestAll_schema(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(config.Schema())
	if err != nil {
		t.Fatal(err)
	}
	type object struct {
		Properties map[string]struct{ Enum []any }
	}
	var schema struct {
		object

		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var providers []any
	for _, p := range links.All().Providers {
		providers = append(providers, p.Name)
	}
	if got := schema.Defs["ModelConfig"].Properties["provider"].Enum; !slices.Equal(got, providers) {
		t.Errorf("the schema has the providers %q, the command %q", got, providers)
	}
	engines := []any{"native"}
	for _, e := range links.All().Engines {
		engines = append(engines, e.Name)
	}
	if got := schema.Properties["engine"].Enum; !slices.Equal(got, engines) {
		t.Errorf("the schema has the engines %q, the command %q", got, engines)
	}
}
