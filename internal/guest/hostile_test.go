package guest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/guest"
)

// TestDescriptionForPeople: a guest must not write to the operator's terminal.
func TestDescriptionForPeople(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*abi.Description){
		"version with escapes": func(d *abi.Description) { d.Version = "1.0\x1b[2J" },
		"long version":         func(d *abi.Description) { d.Version = strings.Repeat("1", 65) },
		"summary of two lines": func(d *abi.Description) { d.Summary = "fine\nloaded: all" },
		"summary with C1":      func(d *abi.Description) { d.Summary = "fine\u009b2J" },
		"summary turned round": func(d *abi.Description) { d.Summary = "fine\u202egnp" },
		"long summary":         func(d *abi.Description) { d.Summary = strings.Repeat("a", 513) },
		"one phase twice": func(d *abi.Description) {
			d.Hooks = []abi.Hook{{Phase: "x\x1b"}, {Phase: abi.StepEnd}, {Phase: "x\x1b"}}
		},
		"a ledger policy that is no policy": func(d *abi.Description) { d.Policies, d.LedgerPolicies = []string{"a"}, []string{"a", "b\x1b"} },
		"many constraints":                  func(d *abi.Description) { d.Hooks = []abi.Hook{{After: make([]string, 65)}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := description()
			spoil(&d)
			_, err := guest.Open(t.Context(), describes(t, d))
			if !errors.Is(err, guest.ErrDescription) {
				t.Fatalf("error %v, want ErrDescription", err)
			}
			if strings.ContainsAny(err.Error(), "\x1b\n\u009b\u202e") {
				t.Errorf("error %q repeats it", err)
			}
		})
	}
}

// TestSchemaWithoutEnd: compiling and checking must come back, with or without
// an error.
func TestSchemaWithoutEnd(t *testing.T) {
	t.Parallel()
	ref := func(to string) map[string]any { return map[string]any{"$ref": to} }
	deep := any(map[string]any{"type": "object"})
	for range 25 {
		deep = map[string]any{"properties": map[string]any{"x": deep}}
	}
	for name, schema := range map[string]any{
		"itself":     ref("#"),
		"each other": map[string]any{"$ref": "#/$defs/a", "$defs": map[string]any{"a": ref("#/$defs/b"), "b": ref("#/$defs/a")}},
		"all of":     map[string]any{"allOf": []any{ref("#"), ref("#")}},
		"dynamic":    map[string]any{"$dynamicRef": "#"},
		"pattern":    map[string]any{"patternProperties": map[string]any{"(a+)+$": map[string]any{}}},
		"bad regex":  map[string]any{"pattern": "(?<x"},
		"deep":       deep,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := description()
			d.ConfigSchema = schema
			g, err := guest.Open(t.Context(), describes(t, d))
			if errors.Is(err, guest.ErrDescription) {
				return // refused at once
			}
			if err != nil {
				t.Fatal(err)
			}
			err = g.CheckConfig(map[string]any{"x": strings.Repeat("a", 64) + "!"})
			if err != nil && !errors.Is(err, guest.ErrConfig) && !errors.Is(err, guest.ErrDescription) {
				t.Errorf("error %v", err)
			}
		})
	}
}
