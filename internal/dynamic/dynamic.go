package dynamic

import (
	"bytes"
	"encoding/json"
)

// Decode decodes JSON into what v points to, with a json.Number for each number in a field of type any. See [Numbers].
func Decode(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v)
}

// Numbers replaces each json.Number of a value, in place, and returns the value.
func Numbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		if i, err := x.Int64(); err == nil {
			return i
		}
		if f, err := x.Float64(); err == nil {
			return f
		}
		return x.String()
	case map[string]any:
		for k, e := range x {
			x[k] = Numbers(e)
		}
	case []any:
		for i, e := range x {
			x[i] = Numbers(e)
		}
	}
	return v
}

// Of returns a value by way of JSON. What JSON does not take is an error.
func Of(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out any
	if err := Decode(data, &out); err != nil {
		return nil, err
	}
	return Numbers(out), nil
}
