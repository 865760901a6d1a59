package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/dynamic"
	"github.com/mortise-dev/mortise/internal/schema"
)

// FuncTool is a tool made of a Go function, for [Funcs]. It may be called concurrently.
type FuncTool struct {
	tool abi.Tool
	call func(ctx context.Context, arguments any) (abi.ToolResult, error)
	err  error
}

// Func makes a tool of a function. In is a struct: its fields are the parameters, by their
// json tags; those without omitempty are required, and a jsonschema tag describes one. Calls
// whose arguments do not fit are refused with a text for the model. Out may be a string, a
// list of content blocks or an [abi.ToolResult]; the model reads any other as JSON.
func Func[In, Out any](name, description string, f func(ctx context.Context, in In) (Out, error)) FuncTool {
	t := FuncTool{tool: abi.Tool{Name: name, Description: description}}
	parameters, err := schemaOf[In]()
	if err != nil {
		t.err = fmt.Errorf("agent: tool %.80q: %w", name, err)
		return t
	}
	checker, err := schema.Compile(parameters)
	if err != nil {
		t.err = fmt.Errorf("agent: tool %.80q: the schema of %v: %w", name, reflect.TypeFor[In](), err)
		return t
	}
	t.tool.Parameters = parameters
	t.call = func(ctx context.Context, arguments any) (abi.ToolResult, error) {
		var in In
		if err := decodeInput(checker, arguments, &in); err != nil {
			return abi.ToolResult{Status: abi.ToolError, Message: fmt.Sprintf("Invalid arguments: %v. Call it again with arguments that fit its schema.", err)}, nil
		}
		out, err := f(ctx, in)
		if err != nil {
			return abi.ToolResult{}, err
		}
		return resultOf(out)
	}
	return t
}

// WithKind declares what the tool does, for policies.
func (t FuncTool) WithKind(kind abi.ToolKind) FuncTool {
	t.tool.Kind = kind
	return t
}

// Funcs makes [Tools] of functions. It returns the error of a tool whose parameters have no
// schema, or whose name is missing or used twice.
func Funcs(tools ...FuncTool) (Tools, error) {
	out := &funcs{byName: make(map[string]FuncTool)}
	for _, t := range tools {
		_, twice := out.byName[t.tool.Name]
		switch {
		case t.err != nil:
			return nil, t.err
		case t.call == nil || t.tool.Name == "":
			return nil, fmt.Errorf("agent: a tool of Funcs has no name, or was not made by Func (description %.80q)", t.tool.Description)
		case twice:
			return nil, fmt.Errorf("agent: tool already registered: %.80s", t.tool.Name)
		}
		out.byName[t.tool.Name] = t
		out.list = append(out.list, t.tool)
	}
	return out, nil
}

type funcs struct {
	list   []abi.Tool
	byName map[string]FuncTool
}

func (f *funcs) Tools() []abi.Tool { return f.list }

func (f *funcs) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	t, ok := f.byName[call.Name]
	if !ok {
		return abi.ToolResult{}, fmt.Errorf("tool '%.80s' not found", call.Name)
	}
	return t.call(ctx, call.Arguments)
}

// schemaOf is the JSON Schema of a struct, as a dynamic value.
func schemaOf[In any]() (map[string]any, error) {
	typ := reflect.TypeFor[In]()
	if typ.Kind() != reflect.Struct {
		return nil, fmt.Errorf("its input is %v, must be a struct", typ)
	}
	inferred, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, fmt.Errorf("its input %v has no JSON Schema: %w", typ, err)
	}
	out, err := dynamic.Of(inferred)
	if err != nil {
		return nil, fmt.Errorf("its input %v has no JSON Schema: %w", typ, err)
	}
	object, ok := out.(map[string]any)
	if _, fields := object["properties"]; ok && !fields {
		object["properties"] = map[string]any{} // Some providers demand it.
	}
	return object, nil
}

// decodeInput checks arguments and reads them as a struct.
func decodeInput(checker *schema.Schema, arguments, in any) error {
	if arguments == nil {
		arguments = map[string]any{}
	}
	if err := checker.Check(arguments); err != nil {
		return err
	}
	data, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, in)
}

// resultOf is the result that a function returned.
func resultOf(out any) (abi.ToolResult, error) {
	switch out := out.(type) {
	case abi.ToolResult:
		return out, nil
	case []abi.ContentBlock:
		return abi.ToolResult{Content: out}, nil
	case string:
		return abi.ToolResult{Message: out}, nil
	}
	data, err := dynamic.Of(out)
	if err != nil {
		return abi.ToolResult{}, fmt.Errorf("the result %T is not JSON: %w", out, err)
	}
	if data == nil {
		return abi.ToolResult{Message: "null"}, nil
	}
	return abi.ToolResult{Data: data}, nil
}
