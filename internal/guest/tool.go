package guest

import (
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/schema"
)

// CompileTool reads the JSON Schema of a tool's parameters. A tool without one takes
// any arguments. References to other documents are refused.
func (g *Guest) CompileTool(t *abi.Tool) (*schema.Schema, error) {
	s, err := schema.Compile(t.Parameters)
	if err != nil {
		return nil, fmt.Errorf("guest: module %q: %w: tool %.80q: parameters: %w", g.caller.Name(), ErrDescription, t.Name, err)
	}
	return s, nil
}
