package serve

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// rules are schemas for what a route checks itself. They do not change.
type rules struct {
	registry huma.Registry
	// messages is an input, run one of a batch.
	messages, run *huma.Schema
}

func newRules() *rules {
	r := &rules{registry: huma.NewMapRegistry("#/components/schemas/", schemaName)}
	r.messages = r.registry.Schema(reflect.TypeFor[[]inputMessage](), true, "")
	r.run = r.registry.Schema(reflect.TypeFor[batchRun](), true, "")
	return r
}

// wrong returns the first fault of a value, of which path is the place. It is nil if there is none.
func (r *rules) wrong(schema *huma.Schema, path string, v any) *huma.ErrorDetail {
	place, result := huma.NewPathBuffer(nil, 0), &huma.ValidateResult{}
	place.Push(path)
	huma.Validate(r.registry, schema, place, huma.ModeWriteToServer, v, result)
	for _, err := range result.Errors {
		if d, ok := err.(*huma.ErrorDetail); ok { //nolint:errorlint // huma makes them, and wraps none
			return d
		}
	}
	return nil
}
