package wire

import (
	"bytes"
	"fmt"
	"reflect"
)

// Format is how a guest's values are encoded.
type Format string

// Formats. The zero Format is [MessagePack].
const (
	MessagePack Format = "msgpack"
	JSON        Format = "json"
)

// Bounds on what Unmarshal takes.
const (
	// MaxDepth is how deep maps and arrays may nest, the outermost counted as 1.
	MaxDepth = 64
	// MaxValues is how many values an input may hold, keys not counted. One byte
	// can declare an empty message, which takes over a hundred when decoded, so
	// the length of an input alone bounds too little.
	MaxValues = 1 << 18
)

// Detect returns the format of a description: JSON when its first byte that is
// not white space is "{".
func Detect(describe []byte) Format {
	if trimmed := bytes.TrimLeft(describe, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		return JSON
	}
	return MessagePack
}

// Marshal returns the encoding of v, which the caller owns. v is a struct with
// json tags, a pointer to one, or a dynamic value.
func (f Format) Marshal(v any) ([]byte, error) {
	switch f {
	case MessagePack, "":
		return AppendValue(nil, v, 0)
	case JSON:
		return marshalJSON(v)
	}
	return nil, fmt.Errorf("wire: unknown format %q", string(f))
}

// Unmarshal replaces what v points to by the value that data holds. Unknown
// fields are ignored; nil is the same as absent. After an error the value is
// partly written and must not be used.
func (f Format) Unmarshal(data []byte, v any) error { return f.decode(data, v, false) }

// Take is Unmarshal of data that nothing changes any more: what it decodes may share the
// memory.
func (f Format) Take(data []byte, v any) error { return f.decode(data, v, true) }

func (f Format) decode(data []byte, v any, owned bool) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("wire: %T is not a pointer that can be written to", v)
	}
	switch f {
	case MessagePack, "":
		return unmarshalMessagePack(data, target.Elem(), owned)
	case JSON:
		return unmarshalJSON(data, target.Elem())
	}
	return fmt.Errorf("wire: unknown format %q", string(f))
}

// Value returns v as a guest would get it in a field of type any: nil, bool,
// int64, float64, string, []byte, []any or map[string]any, through and through.
// Nothing of the result is shared with v.
func Value(v any) (any, error) {
	data, err := AppendValue(nil, v, 0)
	if err != nil {
		return nil, err
	}
	var out any
	if err := unmarshalMessagePack(data, reflect.ValueOf(&out).Elem(), true); err != nil {
		return nil, err
	}
	return out, nil
}
