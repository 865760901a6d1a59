package dynamic

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// Decode decodes one JSON value into what v points to, with a json.Number for each number in a field of type any. See [Numbers].
func Decode(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}

// Value decodes one JSON value. A number that no float64 can have is its digits.
func Value(data []byte) (any, error) {
	var v any
	err := Decode(data, &v)
	return Numbers(v), err
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

// Exact returns a value with the numbers as they were written that are still those that a plugin saw: it gets 64 bits of them. Wrote is what
// [Decode] makes of the JSON, and seen the same with [Numbers].
func Exact(now, seen, wrote any) any {
	switch t := now.(type) {
	case map[string]any:
		was, _ := seen.(map[string]any)
		as, _ := wrote.(map[string]any)
		out := make(map[string]any, len(t))
		for k := range t {
			out[k] = Exact(t[k], was[k], as[k])
		}
		return out
	case []any:
		was, _ := seen.([]any)
		as, _ := wrote.([]any)
		out := slices.Clone(t)
		for i := range min(len(t), len(was), len(as)) {
			out[i] = Exact(t[i], was[i], as[i])
		}
		return out
	}
	if number, ok := wrote.(json.Number); ok && now == seen {
		return number
	}
	return now
}

// Of returns a value by way of JSON. What JSON does not take is an error.
func Of(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return Value(data)
}
