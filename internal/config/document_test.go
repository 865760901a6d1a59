package config_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"github.com/mortise-dev/mortise/internal/config"
)

// TestConfigDocument keeps docs/config.md, which lists every key of mortise.yaml, up to date with the structs.
func TestConfigDocument(t *testing.T) {
	t.Parallel()
	schema, ok := config.Schema().(*jsonschema.Schema)
	if !ok {
		t.Fatalf("the schema is a %T", config.Schema())
	}
	d := configDocument{defs: schema.Definitions, users: make(map[string][]string)}
	d.text.WriteString("# Every key of mortise.yaml\n\nGenerated from the config's structs; " +
		"[operating.md](operating.md) has examples, [mortise.schema.json](mortise.schema.json) the same for editors.\n" +
		"Unknown keys are errors. Paths are relative to the folder of the file. " +
		"Sizes and times that are left out, or zero, have their defaults.\n")
	d.find("", schema)
	d.table("Top level", schema)
	for _, name := range d.order {
		d.table(title(d.users[name]), d.defs[name])
	}
	if left := slices.Sorted(maps.Keys(d.defs)); len(d.order) < len(left)-1 { // the list of agents has no keys
		t.Errorf("%d of the types %q are described", len(d.order), left)
	}
	path := filepath.Join(root, "docs", "config.md")
	if *update {
		if err := os.WriteFile(path, []byte(d.text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != d.text.String() {
		t.Errorf("docs/config.md is not up to date (%v): run go test ./internal/config -update", err)
	}
}

// configDocument writes a table for each struct, once, under the first places where it is used.
type configDocument struct {
	defs  jsonschema.Definitions
	text  strings.Builder
	order []string
	users map[string][]string
}

// find lists the structs below s and where they are used.
func (d *configDocument) find(path string, s *jsonschema.Schema) {
	if s.Properties == nil {
		return
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		suffix, name := d.target(p.Value)
		if name == "" {
			continue
		}
		at := strings.TrimPrefix(path+"."+p.Key+suffix, ".")
		first := len(d.users[name]) == 0
		d.users[name] = append(d.users[name], at)
		if first {
			d.order = append(d.order, name)
			d.find(at, d.defs[name])
		}
	}
}

// target follows lists and maps to the struct that their values have, "" for none.
func (d *configDocument) target(s *jsonschema.Schema) (suffix, name string) {
	switch {
	case s.Ref != "":
		name = strings.TrimPrefix(s.Ref, "#/$defs/")
		if def := d.defs[name]; def.Properties == nil {
			return d.target(def)
		}
		return "", name
	case s.Items != nil:
		suffix, name = d.target(s.Items)
		return "[]" + suffix, name
	case s.AdditionalProperties != nil && s.AdditionalProperties != jsonschema.FalseSchema:
		suffix, name = d.target(s.AdditionalProperties)
		return ".NAME" + suffix, name
	}
	return "", ""
}

func (d *configDocument) table(heading string, s *jsonschema.Schema) {
	fmt.Fprintf(&d.text, "\n## %s\n\n| key | value | |\n|---|---|---|\n", heading)
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		text := strings.ReplaceAll(p.Value.Description, "|", "\\|")
		fmt.Fprintf(&d.text, "| `%s` | %s | %s |\n", p.Key, d.kind(p.Value), text)
	}
}

// kind names the values that a key takes.
func (d *configDocument) kind(s *jsonschema.Schema) string {
	switch {
	case len(s.Enum) > 0:
		var words []string
		for _, v := range s.Enum {
			words = append(words, fmt.Sprint(v))
		}
		return strings.Join(words, ", ")
	case s.Ref != "":
		if _, name := d.target(s); d.defs[strings.TrimPrefix(s.Ref, "#/$defs/")].Properties == nil || name == "" {
			return "map"
		}
		return "section"
	case s.Type == "array":
		return "list"
	case s.Type == "object":
		return "map"
	case s.Pattern != "" && strings.Contains(s.Pattern, "µs"):
		return "duration"
	case s.Type == "":
		return "any"
	}
	return s.Type
}

// title names the places of a struct.
func title(users []string) string {
	for i, u := range users {
		users[i] = "`" + u + "`"
	}
	if len(users) > 3 {
		return strings.Join(users[:3], ", ") + " and others"
	}
	return strings.Join(users, ", ")
}
