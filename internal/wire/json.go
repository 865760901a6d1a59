package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

func marshalJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("wire: json: %w: %w", ErrValue, err)
	}
	out := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if jsonDepth(out) > MaxDepth {
		return nil, fmt.Errorf("wire: json: nests deeper than %d: %w", MaxDepth, ErrValue)
	}
	return out, nil
}

// jsonDepth returns how deep valid JSON nests.
func jsonDepth(data []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		case '"':
			for i++; data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		}
	}
	return deepest
}

// unmarshalJSON turns JSON into MessagePack and decodes that, so that a field
// means the same in both. encoding/json would take keys in any case of letters.
func unmarshalJSON(data []byte, v reflect.Value) error {
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		at := len(data)
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			at = int(syntax.Offset)
		}
		return &DecodeError{Format: JSON, Offset: at, What: "not valid JSON"}
	}
	if jsonDepth(data) > MaxDepth {
		return &DecodeError{Format: JSON, Offset: 0, What: fmt.Sprintf("nests deeper than %d", MaxDepth)}
	}
	r := jsonReader{in: json.NewDecoder(bytes.NewReader(data))}
	r.in.UseNumber()
	tree, err := r.value()
	if err != nil {
		return err
	}
	packed, err := marshalMessagePack(tree)
	if err != nil {
		return &DecodeError{Format: JSON, Offset: 0, What: "a number that no float64 can hold"}
	}
	err = unmarshalMessagePack(packed, v)
	if known := (*DecodeError)(nil); errors.As(err, &known) {
		return &DecodeError{Format: JSON, Offset: -1, Path: known.Path, What: known.What}
	}
	return err
}

// jsonReader builds a tree of valid JSON. It knows what encoding/json forgets:
// how many values there are and whether a key comes twice.
type jsonReader struct {
	in     *json.Decoder
	values int
}

func (r *jsonReader) fault(what string) error {
	return &DecodeError{Format: JSON, Offset: int(r.in.InputOffset()), What: what}
}

func (r *jsonReader) value() (any, error) {
	if r.values++; r.values > MaxValues {
		return nil, r.fault(fmt.Sprintf("more than %d values", MaxValues))
	}
	token, err := r.in.Token()
	if err != nil {
		return nil, r.fault("not valid JSON")
	}
	switch token {
	case json.Delim('{'):
		return r.object()
	case json.Delim('['):
		return r.list()
	}
	return token, nil
}

func (r *jsonReader) object() (any, error) {
	m := map[string]any{}
	for r.in.More() {
		token, err := r.in.Token()
		if err != nil {
			return nil, r.fault("not valid JSON")
		}
		key, ok := token.(string)
		if !ok {
			return nil, r.fault("a key that is not a string")
		}
		if _, twice := m[key]; twice {
			return nil, r.fault("a key of this map comes twice")
		}
		if m[key], err = r.value(); err != nil {
			return nil, err
		}
	}
	return m, r.end()
}

func (r *jsonReader) list() (any, error) {
	list := []any{}
	for r.in.More() {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, r.end()
}

func (r *jsonReader) end() error {
	if _, err := r.in.Token(); err != nil {
		return r.fault("not valid JSON")
	}
	return nil
}
