package guest

import (
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mortise-dev/mortise/abi"
)

// Schema checks the arguments of a tool. It is safe for concurrent use.
type Schema struct{ schema *jsonschema.Schema }

// CompileTool reads the JSON Schema of a tool's parameters. A tool without one takes
// any arguments. References to other documents are refused.
func (g *Guest) CompileTool(t *abi.Tool) (*Schema, error) {
	if t.Parameters == nil {
		return &Schema{}, nil
	}
	wrong := func(err error) error {
		return fmt.Errorf("guest: module %q: %w: tool %.80q: parameters: %s", g.caller.Name(), ErrDescription, t.Name, oneLine(err))
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaURL, jsonValue(t.Parameters)); err != nil {
		return nil, wrong(err)
	}
	schema, err := compiler.Compile(schemaURL)
	if err != nil {
		return nil, wrong(err)
	}
	return &Schema{schema: schema}, nil
}

// Check says in one line what is wrong with arguments. Absent ones count as an
// object without fields.
func (s *Schema) Check(arguments any) error {
	if s.schema == nil {
		return nil
	}
	if arguments == nil {
		arguments = map[string]any{}
	}
	if err := s.schema.Validate(jsonValue(arguments)); err != nil {
		return fmt.Errorf("%s", oneLine(err))
	}
	return nil
}
