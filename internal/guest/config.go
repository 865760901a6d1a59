package guest

import (
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/schema"
)

// CheckConfig checks an operator's config against the schema that the module
// gave. A module without a schema takes any config that can be encoded. References to other
// documents are refused: a guest's schema must not make the host read files.
func (g *Guest) CheckConfig(config any) error {
	// A config that cannot be encoded would make each call fail.
	if _, err := g.format.Marshal(&abi.Event{Config: config}); err != nil {
		return fmt.Errorf("guest: module %q: %w: config: %w", g.caller.Name(), ErrConfig, err)
	}
	if g.desc.ConfigSchema == nil {
		return nil
	}
	s, err := schema.Compile(g.desc.ConfigSchema)
	if err != nil {
		return fmt.Errorf("guest: module %q: %w: config_schema: %w", g.caller.Name(), ErrDescription, err)
	}
	switch err := s.Check(config); {
	case errors.Is(err, schema.ErrCostly):
		return fmt.Errorf("guest: module %q: %w: config_schema: %w", g.caller.Name(), ErrDescription, err)
	case err != nil:
		return fmt.Errorf("guest: module %q: %w: %w", g.caller.Name(), ErrConfig, err)
	}
	return nil
}
