package guest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/guest"
)

func ref(to string) map[string]any { return map[string]any{"$ref": to} }

// doubling is a schema of n levels, of which each applies the next one twice under a keyword: 2^n schemas in all.
func doubling(n int, keyword string) map[string]any {
	defs := map[string]any{fmt.Sprint("a", n): map[string]any{"type": "object"}}
	for i := range n {
		next := ref(fmt.Sprint("#/$defs/a", i+1))
		defs[fmt.Sprint("a", i)] = map[string]any{keyword: []any{next, next}}
	}
	return map[string]any{"$ref": "#/$defs/a0", "$defs": defs}
}

func items(n int, item func(i int) any) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = item(i)
	}
	return out
}

// nested is a value in n objects.
func nested(n int) any {
	v := any(map[string]any{})
	for range n {
		v = map[string]any{"x": v}
	}
	return v
}

// described opens a guest with a schema, for its config and for a tool.
func described(t *testing.T, schema any) (*guest.Guest, *abi.Tool) {
	t.Helper()
	d := description()
	d.ConfigSchema = schema
	g, err := guest.Open(t.Context(), describes(t, d))
	if err != nil {
		t.Fatal(err)
	}
	return g, &abi.Tool{Name: "bomb", Parameters: schema}
}

// TestSchema_refused: a schema that takes the library very long to compile, or that applies to one value very often, is
// refused when the guest is loaded.
func TestSchema_refused(t *testing.T) {
	t.Parallel()
	draft7 := func(s map[string]any) map[string]any {
		s["$schema"] = "http://json-schema.org/draft-07/schema#"
		return s
	}
	for want, schema := range map[string]any{
		"expands to more than 10000 schemas for one value; use fewer references": doubling(44, "allOf"),
		"expands to more than 10000 schemas":                                     doubling(44, "anyOf"),
		"expands to more than 10000 schemas for one":                             doubling(44, "oneOf"),
		"expands to more than 10000 schemas for one value;":                      draft7(doubling(44, "allOf")),
		"expands to more than 10000 schemas for one value; ": map[string]any{
			"properties": map[string]any{"x": ref("#/$defs/a0")}, "$defs": doubling(44, "allOf")["$defs"],
		},
		"refers to itself for the same value; let it":     map[string]any{"not": ref("#")},
		"refers to itself for the same value;":            map[string]any{"dependentSchemas": map[string]any{"x": ref("#")}},
		"refers to itself for the same value; ":           map[string]any{"if": map[string]any{}, "then": ref("#")},
		"$dynamicRef or $recursiveRef, whose":             map[string]any{"properties": map[string]any{"x": map[string]any{"$dynamicRef": "#x", "$dynamicAnchor": "x"}}},
		"$dynamicRef or $recursiveRef":                    map[string]any{"$schema": "https://json-schema.org/draft/2019-09/schema", "items": map[string]any{"$recursiveRef": "#"}},
		"$dynamicRef or $recursiveRef, whose cost cannot": ref("https://json-schema.org/draft/2020-12/schema"),
		"more than 4000 values; make it simpler":          map[string]any{"enum": items(4_000, func(i int) any { return int64(i) })},
		"a name of 257 bytes, and 256 are allowed":        map[string]any{"properties": map[string]any{strings.Repeat("n", 257): true}},
		"3705 values times 1800 references and identifiers": map[string]any{
			"x-list": []any{true}, "oneOf": items(1_800, func(int) any { return ref("#/x-list/0") }), "enum": items(100, func(i int) any { return int64(i) }),
		},
		"a pattern has 1001 bytes, and 1000 are allowed": map[string]any{"pattern": strings.Repeat("a", 1_001)},
		"takes more than 10000 instructions; repeat":     map[string]any{"pattern": "(abcdefghijklmno){1000}"},
		"takes more than 10000 instructions":             map[string]any{"patternProperties": map[string]any{`(\pL|x){20}`: true}},
		"take more than 200000 instructions; use fewer":  map[string]any{"allOf": items(30, func(i int) any { return map[string]any{"pattern": fmt.Sprintf("a{%d}(abcde){900}", i)} })},
	} {
		g, tool := described(t, schema)
		err := g.CheckConfig(map[string]any{})
		if !errors.Is(err, guest.ErrDescription) || !strings.Contains(err.Error(), `module "`) || !strings.Contains(err.Error(), ": config_schema: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("config: %v; want %s", err, want)
		}
		_, err = g.CompileTool(tool)
		if !errors.Is(err, guest.ErrDescription) || !strings.Contains(err.Error(), `tool "bomb": parameters: `) || !strings.Contains(err.Error(), want) {
			t.Errorf("tool: %v; want %s", err, want)
		}
	}
}

// TestSchema_refusedValue: a value that takes the library very long is refused before it is checked, and a schema that
// refers to itself for parts of a value is none the worse for it.
func TestSchema_refusedValue(t *testing.T) {
	t.Parallel()
	twice := map[string]any{"allOf": []any{ref("#"), ref("#")}}
	tree := map[string]any{"properties": map[string]any{"x": ref("#")}}
	long := strings.Repeat("a", 1<<20)
	draft7 := "http://json-schema.org/draft-07/schema#"
	numbers := func(n int) any { return items(n, func(i int) any { return float64(i) }) }
	for name, c := range map[string]struct {
		schema map[string]any
		value  any
		costly bool
	}{
		"a tree":                      {tree, nested(60), false},
		"a tree that doubles":         {map[string]any{"properties": map[string]any{"x": twice}}, nested(60), true},
		"a tree that doubles a bit":   {map[string]any{"properties": map[string]any{"x": twice}}, nested(10), false},
		"its names double":            {map[string]any{"additionalProperties": twice}, nested(60), true},
		"its items double":            {map[string]any{"items": twice}, items(1, func(int) any { return items(1, func(int) any { return numbers(1000) }) }), false},
		"unevaluated parts double":    {map[string]any{"unevaluatedProperties": twice}, nested(60), true},
		"patterns of names double":    {map[string]any{"patternProperties": map[string]any{"x": twice}}, nested(60), true},
		"many items":                  {map[string]any{"items": map[string]any{"type": "number"}}, numbers(100_000), false},
		"many items of many kinds":    {map[string]any{"items": map[string]any{"enum": numbers(1000)}}, numbers(1000), true},
		"items contain one of many":   {map[string]any{"contains": map[string]any{"enum": numbers(3000)}}, numbers(3000), true},
		"items in a range":            {map[string]any{"items": map[string]any{"minimum": 1.5, "multipleOf": 5e-324}}, numbers(100_000), true},
		"unique items":                {map[string]any{"uniqueItems": true}, numbers(1000), false},
		"unique items in each other":  {map[string]any{"uniqueItems": true}, numbers(10_000), true},
		"a long text":                 {map[string]any{"pattern": "^a*$"}, long, false},
		"a long text, a large regexp": {map[string]any{"pattern": "(a?b?){1000}$"}, long, true},
		"a long name, a large regexp": {map[string]any{"patternProperties": map[string]any{"(a?b?){1000}$": true}}, map[string]any{long: true}, true},
		"names that are regexps":      {map[string]any{"$schema": draft7, "propertyNames": map[string]any{"format": "regex"}}, manyNames(1000), true},
	} {
		g, tool := described(t, c.schema)
		schema, err := g.CompileTool(tool)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		err = schema.Check(c.value)
		if costly := err != nil && strings.Contains(err.Error(), "takes more than 2000000 steps; make the schema simpler"); costly != c.costly {
			t.Errorf("%s: %v; want it refused: %t", name, err, c.costly)
		}
		if object, ok := c.value.(map[string]any); ok && c.costly {
			if err := g.CheckConfig(object); !errors.Is(err, guest.ErrDescription) || !strings.Contains(err.Error(), ": config_schema: ") {
				t.Errorf("%s: config: %v", name, err)
			}
		}
	}
}

func manyNames(n int) map[string]any {
	out := map[string]any{}
	for i := range n {
		out[fmt.Sprintf("(%d)", i)] = true
	}
	return out
}

// TestSchema_reasons: what is wrong with a value is said in few words, however much that is, and however long the value.
func TestSchema_reasons(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1<<19)
	many := map[string]any{}
	for i := range 20_000 {
		many[fmt.Sprint("name", i)] = int64(i)
	}
	for name, c := range map[string]struct {
		schema map[string]any
		value  any
		want   string
	}{
		"names":   {map[string]any{"additionalProperties": false}, many, "additional properties 'name"},
		"kinds":   {map[string]any{"additionalProperties": map[string]any{"type": "string"}}, many, "got number, want string; at '/name"},
		"place":   {map[string]any{"additionalProperties": false}, map[string]any{long: true}, "additional properties 'éé"},
		"pattern": {map[string]any{"additionalProperties": map[string]any{"pattern": "^a"}}, map[string]any{long: long}, "does not match pattern '^a'"},
		"format":  {map[string]any{"$schema": "http://json-schema.org/draft-07/schema#", "properties": map[string]any{"x": map[string]any{"format": "date"}}}, map[string]any{"x": long}, "is not valid date"},
		"missing": {map[string]any{"required": items(3_000, func(i int) any { return fmt.Sprint("name", i) })}, map[string]any{}, "missing properties 'name0'"},
	} {
		g, tool := described(t, c.schema)
		schema, err := g.CompileTool(tool)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, err := range []error{schema.Check(c.value), g.CheckConfig(c.value)} {
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 2_200 || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %.300v; want %s in few words", name, err, c.want)
			}
		}
	}
}

// TestSchema_number: a number whose exponent is larger than that of any float is refused before a library makes a
// fraction of it.
func TestSchema_number(t *testing.T) {
	t.Parallel()
	text := `{"name":"x","version":"1","abi":{"min":1,"max":1},"config_schema":{"multipleOf":1e1000000000}}`
	_, err := guest.Open(t.Context(), &module{exports: map[string]func([]byte) ([]byte, error){abi.ExportDescribe: answers([]byte(text), nil)}})
	if !errors.Is(err, guest.ErrDescription) || !strings.Contains(err.Error(), "a number that no float64 can hold") {
		t.Errorf("error %v", err)
	}
}
