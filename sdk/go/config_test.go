package mortise_test

import (
	"fmt"
	"reflect"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

func ExampleStringOr() {
	config := map[string]any{
		"model": map[string]any{"name": "small", "limit": int64(300)},
		"words": []any{"a", "b"},
	}
	fmt.Println(mortise.StringOr(config, "model.name", "large"))
	fmt.Println(mortise.IntOr(config, "model.limit", 100))
	fmt.Println(mortise.BoolOr(config, "model.strict", true))
	fmt.Println(mortise.StringsOr(config, "words", nil))
	// Output:
	// small
	// 300
	// true
	// [a b]
}

func TestConfig(t *testing.T) {
	t.Parallel()
	config := map[string]any{
		"s": "text", "i": int64(3), "f": 2.0, "half": 0.5, "b": false, "nil": nil, "list": []any{"a", int64(1)}, "none": []any{},
		"m": map[string]any{"deep": map[string]any{"x": int64(1)}, "": "empty key"},
	}
	def := []string{"def"}
	for name, pair := range map[string][2]any{
		"string":              {mortise.StringOr(config, "s", "d"), "text"},
		"string missing":      {mortise.StringOr(config, "no", "d"), "d"},
		"string wrong type":   {mortise.StringOr(config, "i", "d"), "d"},
		"string of nil":       {mortise.StringOr(config, "nil", "d"), "d"},
		"no config":           {mortise.StringOr(nil, "s", "d"), "d"},
		"config is text":      {mortise.StringOr("whole", "", "d"), "whole"},
		"path through a text": {mortise.StringOr(config, "s.x", "d"), "d"},
		"int":                 {mortise.IntOr(config, "i", 9), int64(3)},
		"int from float":      {mortise.IntOr(config, "f", 9), int64(2)},
		"int from half":       {mortise.IntOr(config, "half", 9), int64(9)},
		"int deep":            {mortise.IntOr(config, "m.deep.x", 9), int64(1)},
		"float":               {mortise.FloatOr(config, "half", 9), 0.5},
		"float from int":      {mortise.FloatOr(config, "i", 9), 3.0},
		"float missing":       {mortise.FloatOr(config, "no", 9), 9.0},
		"bool":                {mortise.BoolOr(config, "b", true), false},
		"bool missing":        {mortise.BoolOr(config, "no", true), true},
		"strings mixed":       {mortise.StringsOr(config, "list", def), def},
		"strings empty":       {mortise.StringsOr(config, "none", def), []string{}},
		"strings missing":     {mortise.StringsOr(config, "no", def), def},
		"map":                 {mortise.MapOr(config, "m.deep", nil), map[string]any{"x": int64(1)}},
		"map missing":         {mortise.MapOr(config, "s", nil), map[string]any(nil)},
		"list":                {mortise.ListOr(config, "list", nil), []any{"a", int64(1)}},
		"list missing":        {mortise.ListOr(config, "s", nil), []any(nil)},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: %#v, want %#v", name, pair[0], pair[1])
		}
	}
	if _, ok := mortise.Lookup(config, "nil"); ok {
		t.Error("a nil was found")
	}
}
