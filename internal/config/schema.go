package config

import (
	"reflect"

	"github.com/invopop/jsonschema"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// Schema is the JSON Schema of mortise.yaml. Editors take it, and docs/mortise.schema.json is a copy.
func Schema() any {
	r := &jsonschema.Reflector{
		FieldNameTag: "yaml", Anonymous: true, RequiredFromJSONSchemaTags: true, ExpandedStruct: true,
		LookupComment: func(t reflect.Type, field string) string { return keyTexts[t.Name()+"."+field] },
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			switch t {
			case reflect.TypeFor[Duration]():
				return &jsonschema.Schema{Type: "string", Pattern: `^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)([0-9.]+(ns|us|µs|ms|s|m|h))*$|^[0-9]{1,6}d$|^0$`}
			case reflect.TypeFor[ValueConfig]():
				key := &jsonschema.Schema{Ref: "#/$defs/KeyConfig"}
				return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}, key}}
			case reflect.TypeFor[Checksum]():
				return &jsonschema.Schema{Type: "string", Pattern: checksumText().String()}
			case reflect.TypeFor[abi.FailurePolicy]():
				return &jsonschema.Schema{Type: "string", Enum: []any{abi.FailRun, abi.FailIgnore, abi.FailQuarantine}}
			case reflect.TypeFor[compaction.Mode]():
				return &jsonschema.Schema{Type: "string", Enum: []any{compaction.KeepRecent, compaction.SafeFrontier}}
			}
			return nil
		},
	}
	s := r.Reflect(&Config{})
	s.Title, s.Description = "mortise.yaml", "The config of mortise. Paths are relative to the folder of the file."
	return s
}
