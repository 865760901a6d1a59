package serve

import (
	"context"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// register adds a route whose errors are documented as [Problem].
func register[I, O any](api huma.API, op huma.Operation, handler func(context.Context, *I) (*O, error)) {
	huma.Register(api, op, handler)
	documented := find(api.OpenAPI(), op)
	if documented == nil {
		return
	}
	documented.Responses["default"] = &huma.Response{
		Description: "A problem, as RFC 9457 has it",
		Content: map[string]*huma.MediaType{"application/problem+json": {
			Schema: api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, ""),
		}},
	}
}

func find(doc *huma.OpenAPI, op huma.Operation) *huma.Operation {
	item := doc.Paths[op.Path]
	if item == nil {
		return nil
	}
	for _, o := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
		if o != nil && o.OperationID == op.OperationID {
			return o
		}
	}
	return nil
}
