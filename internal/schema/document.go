package schema

import (
	"fmt"
	"strings"
)

// Bounds on the text of a schema. The library looks at all values again for some references, and joins the names that
// lead to each.
const (
	maxSchemaValues = 4_000
	maxSchemaName   = 256
	// maxSchemaRefs bounds values times references and identifiers.
	maxSchemaRefs = 5_000_000
)

// documentSize counts what a schema consists of.
type documentSize struct{ values, refs int }

// checkDocument refuses a schema that is too large to be compiled.
func checkDocument(document any) error {
	var size documentSize
	if err := size.add(document); err != nil {
		return err
	}
	if n := size.values * size.refs; n > maxSchemaRefs {
		return fmt.Errorf("%w: the schema has %d values times %d references and identifiers, and a product of %d is allowed; use fewer references",
			ErrCostly, size.values, size.refs, maxSchemaRefs)
	}
	return nil
}

// add counts a value and what is in it, which wire.MaxDepth bounds.
func (d *documentSize) add(v any) error {
	d.values++
	if d.values > maxSchemaValues {
		return fmt.Errorf("%w: the schema has more than %d values; make it simpler", ErrCostly, maxSchemaValues)
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := d.add(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, e := range v {
			if len(name) > maxSchemaName {
				return fmt.Errorf("%w: the schema has a name of %d bytes, and %d are allowed", ErrCostly, len(name), maxSchemaName)
			}
			if strings.HasPrefix(name, "$") || name == "id" {
				d.refs++
			}
			if err := d.add(e); err != nil {
				return err
			}
		}
	}
	return nil
}
