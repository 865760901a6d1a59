package providertest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// problem is the first place at which a body does not have its shape.
type problem struct {
	path []any // names, indices and tags
	// kind is missing, unknown, type, value or syntax.
	kind string
	// want is a type, or what values there may be; got is the value.
	want []string
	got  string
}

// tag is the variant of a union in a path.
type tag string

// rule checks a value.
type rule func(path []any, v any) *problem

// fields are those that an object may have. A name that ends with "!" is required. A nil
// rule takes any value.
type fields map[string]rule

// conform checks that a body is an object with these fields.
func conform(body []byte, f fields) *problem {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return &problem{kind: "syntax", got: err.Error()}
	}
	if d.More() {
		return &problem{kind: "syntax", got: "there is more than one value"}
	}
	return obj(f)(nil, v)
}

func join(path []any, next any) []any { return append(slices.Clip(path), next) }

// obj is an object.
func obj(f fields) rule {
	return func(path []any, v any) *problem {
		m, ok := v.(object)
		if !ok {
			return &problem{path: path, kind: "type", want: []string{"object"}, got: kindOf(v)}
		}
		for _, name := range slices.Sorted(maps.Keys(f)) {
			plain, required := strings.CutSuffix(name, "!")
			value, there := m[plain]
			switch check := f[name]; {
			case required && !there:
				return &problem{path: join(path, plain), kind: "missing"}
			case !there || value == nil && !required || check == nil:
			default:
				if p := check(join(path, plain), value); p != nil {
					return p
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(m)) {
			_, optional := f[name]
			if _, required := f[name+"!"]; !optional && !required {
				return &problem{path: join(path, name), kind: "unknown"}
			}
		}
		return nil
	}
}

// variants is an object whose field type decides on the others; the first one of names is
// meant where there is no type.
func variants(of map[string]fields, fallback string) rule {
	return func(path []any, v any) *problem {
		m, ok := v.(object)
		if !ok {
			return &problem{path: path, kind: "type", want: []string{"object"}, got: kindOf(v)}
		}
		name, ok := m["type"].(string)
		if !ok {
			if name = fallback; name == "" {
				return &problem{path: join(path, "type"), kind: "missing"}
			}
		}
		f, known := of[name]
		if !known {
			return &problem{path: join(path, "type"), kind: "value", want: slices.Sorted(maps.Keys(of)), got: name}
		}
		f = maps.Clone(f)
		f["type"] = nil
		return obj(f)(join(path, tag(name)), v)
	}
}

// list is an array.
func list(of rule) rule {
	return func(path []any, v any) *problem {
		all, ok := v.([]any)
		if !ok {
			return &problem{path: path, kind: "type", want: []string{"array"}, got: kindOf(v)}
		}
		for i, e := range all {
			if of == nil {
				break
			}
			if p := of(join(path, i), e); p != nil {
				return p
			}
		}
		return nil
	}
}

// textOr is a string or what the rule takes.
func textOr(r rule) rule {
	return func(path []any, v any) *problem {
		if _, ok := v.(string); ok {
			return nil
		}
		return r(path, v)
	}
}

// is takes values of one type: string, integer, number, boolean or object.
func is(kind string) rule {
	return func(path []any, v any) *problem {
		got := kindOf(v)
		if got == kind || kind == "number" && got == "integer" {
			return nil
		}
		return &problem{path: path, kind: "type", want: []string{kind}, got: got}
	}
}

// one takes one of some strings.
func one(of ...string) rule {
	return func(path []any, v any) *problem {
		text, ok := v.(string)
		if !ok {
			return &problem{path: path, kind: "type", want: []string{"string"}, got: kindOf(v)}
		}
		if !slices.Contains(of, text) {
			return &problem{path: path, kind: "value", want: of, got: text}
		}
		return nil
	}
}

func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case json.Number:
		if _, err := v.Int64(); err == nil {
			return "integer"
		}
		return "number"
	default:
		return "object"
	}
}
