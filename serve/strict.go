package serve

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// strictJSON is huma's format, without the names that encoding/json takes beyond those of the document: in other case, and twice.
func strictJSON() huma.Format {
	f := huma.DefaultJSONFormat
	f.Unmarshal = func(data []byte, v any) error {
		if err := json.Unmarshal(data, v); err != nil {
			return err //nolint:wrapcheck // huma shows it
		}
		if _, first := v.(*any); first {
			return nil // it is read again, into what the route takes
		}
		return strict(data, wire.Whole(data), reflect.TypeOf(v).Elem(), "body")
	}
	return f
}

// misnamed is the error of strict: the place of a field.
type misnamed string

// Error begins with beforePlace.
func (m misnamed) Error() string { return beforePlace + string(m) }

const beforePlace = "misnamed field "

// strict checks the names in a JSON value, which is read into a type. Path is the place of the value.
func strict(data []byte, at wire.Span, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	known := fieldsOf(t)
	switch {
	case t == reflect.TypeFor[json.RawMessage](): // its reader checks it
		return nil
	case t.Kind() == reflect.Slice && data[at.From] == '[':
		return wire.Array(data, at, func(i int, val wire.Span) error {
			return strict(data, val, t.Elem(), fmt.Sprintf("%s[%d]", path, i))
		})
	case len(known) > 0 && data[at.From] == '{':
		seen := map[string]bool{}
		return wire.Object(data, at, func(key []byte, _, val wire.Span) error {
			name, place := string(key), path+"."+string(key)
			if seen[name] || other(known, name) {
				return misnamed(place)
			}
			seen[name] = true
			if known[name] == nil {
				return nil // of a later version of AG-UI
			}
			return strict(data, val, known[name], place)
		})
	case wire.Repeats(at.Of(data)):
		return misnamed(path)
	}
	return nil
}

// fieldsOf are the types of a struct's fields, by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if t.Kind() != reflect.Struct {
		return nil
	}
	out := map[string]reflect.Type{}
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			out[name] = f.Type
		}
	}
	return out
}

// other reports whether a name differs from that of a field in its case alone.
func other(known map[string]reflect.Type, name string) bool {
	if known[name] != nil {
		return false
	}
	for field := range known {
		if strings.EqualFold(field, name) {
			return true
		}
	}
	return false
}
