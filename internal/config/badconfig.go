package config

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// valueError is a value that is of the right kind and makes no sense.
type valueError struct {
	token *token.Token
	text  string
}

func (b *valueError) Error() string { return b.text }

// placedError is a problem of a file. Its text has no line of the file, which may have a secret.
type placedError struct{ Problem }

func (p *placedError) Error() string {
	if p.Line == 0 {
		return " " + p.Problem.Problem
	}
	return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Problem.Problem)
}

// wrongAt words what is wrong with a config, and returns where, if that is known.
func wrongAt(data []byte, err error) (text string, at *token.Token) {
	text = err.Error()
	var value *valueError
	var kind *yaml.TypeError
	var node *yaml.UnexpectedNodeTypeError
	var large *yaml.OverflowError
	var unknown *yaml.UnknownFieldError
	var other yaml.Error
	switch {
	case errors.As(err, &value):
		at = value.token
		text = keyOf(data, at) + ": " + value.text
	case errors.As(err, &kind):
		at = kind.Token
		text = fmt.Sprintf("%s: is %s, must be %s", keyOf(data, at), kindOf(kind.SrcType.Kind()), kindOf(kind.DstType.Kind()))
	case errors.As(err, &node):
		at = node.Token
		text = fmt.Sprintf("%s: is %s, must be %s", keyOf(data, at), nodeKind(node.Actual), nodeKind(node.Expected))
	case errors.As(err, &large):
		at = large.Token
		text = fmt.Sprintf("%s: %.80s is too large or too small", keyOf(data, at), large.SrcNum)
	case errors.As(err, &unknown):
		at = unknown.Token
		text = unknownKey(keyOf(data, at))
	case errors.As(err, &other):
		at, text = other.GetToken(), other.GetMessage()
	}
	return text, at
}

// kindOf words the kind of a value.
func kindOf(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "keys with values"
	default:
		return "a whole number"
	}
}

// nodeKind words the kind of a part of a file.
func nodeKind(t ast.NodeType) string {
	switch t {
	case ast.SequenceType:
		return "a list"
	case ast.MappingType, ast.MappingValueType:
		return "keys with values"
	case ast.IntegerType, ast.FloatType:
		return "a number"
	case ast.BoolType:
		return "true or false"
	default:
		return "text"
	}
}

// unknownKey lists the keys that exist where an unknown one was found.
func unknownKey(path string) string {
	parent, key := "", path
	if i := strings.LastIndex(path, "."); i >= 0 {
		parent, key = path[:i], path[i+1:]
	}
	text := fmt.Sprintf("there is no key %.80q", key)
	if parent != "" {
		text += " in " + parent
	}
	keys := keyNames(reflect.TypeFor[Config]())
	if parent != "" {
		keys = keysAt(reflect.TypeFor[Config](), parent)
	}
	if len(keys) == 0 {
		return text
	}
	return text + Meant(key, keys) + "; there are " + strings.Join(keys, ", ")
}

// keysAt lists the keys that the config has below a path.
func keysAt(t reflect.Type, path string) []string {
	for step := range strings.SplitSeq(path, ".") {
		name, _, _ := strings.Cut(step, "[")
		switch t.Kind() {
		case reflect.Map: // name is free
			t = t.Elem()
		case reflect.Struct:
			if t = keyed(t)[name]; t == nil {
				return nil
			}
		default:
			return nil
		}
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
	}
	return keyNames(t)
}

// keyed returns the type of each key of a struct.
func keyed(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for f := range fields(t) {
		out[f.key] = f.value
	}
	return out
}

// keyNames returns the keys of a struct in the order of its fields.
func keyNames(t reflect.Type) (names []string) {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for f := range fields(t) {
		names = append(names, f.key)
	}
	return names
}

type field struct {
	key   string
	value reflect.Type
}

// fields goes through the keys of a struct, those of inlined structs among them.
func fields(t reflect.Type) iter.Seq[field] {
	return func(yield func(field) bool) {
		for f := range t.Fields() {
			key, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if options == "inline" {
				for inner := range fields(f.Type) {
					if !yield(inner) {
						return
					}
				}
			} else if key != "" && key != "-" && !yield(field{key, f.Type}) {
				return
			}
		}
	}
}

// keyOf is the path of the key, or of the value, that a token is.
func keyOf(data []byte, at *token.Token) string {
	file, err := parser.ParseBytes(data, 0)
	if err != nil || at == nil {
		return "the config"
	}
	for _, doc := range file.Docs {
		if path := find(doc.Body, at.Position, ""); path != "" {
			return path
		}
	}
	return "the config"
}

// find looks for a position below a node whose path is known.
func find(n ast.Node, at *token.Position, path string) string {
	here := func(n ast.Node) bool {
		p := n.GetToken().Position
		return p.Line == at.Line && p.Column == at.Column
	}
	switch n := n.(type) {
	case nil:
		return ""
	case *ast.MappingNode:
		for _, v := range n.Values {
			if p := find(v, at, path); p != "" {
				return p
			}
		}
	case *ast.MappingValueNode:
		below := strings.TrimPrefix(path+"."+n.Key.GetToken().Value, ".")
		if here(n.Key) {
			return below
		}
		return find(n.Value, at, below)
	case *ast.SequenceNode:
		for i, v := range n.Values {
			if p := find(v, at, fmt.Sprintf("%s[%d]", path, i)); p != "" {
				return p
			}
		}
	}
	if path != "" && here(n) {
		return path
	}
	return ""
}
