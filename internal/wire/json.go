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
			i = closingQuote(data, i)
		}
	}
	return deepest
}

// closingQuote returns where the string that starts at i ends.
func closingQuote(data []byte, i int) int {
	for i++; data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}

// unmarshalJSON turns JSON into MessagePack and decodes that, so that a field
// means the same in both. encoding/json by itself would take keys in any case
// of letters and the last of two equal keys.
func unmarshalJSON(data []byte, v reflect.Value) error {
	if !json.Valid(data) {
		at := len(data)
		err := json.Unmarshal(data, new(json.RawMessage))
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			at = int(syntax.Offset)
		}
		return &DecodeError{Format: JSON, Offset: at, What: "not valid JSON"}
	}
	p := packer{in: data, out: make([]byte, 0, len(data)+len(data)/2)}
	if err := p.value(0); err != nil {
		return err
	}
	err := unmarshalMessagePack(p.out, v, true)
	if fault := (*DecodeError)(nil); errors.As(err, &fault) {
		return &DecodeError{Format: JSON, Offset: -1, Path: fault.Path, What: fault.What}
	}
	return err
}
