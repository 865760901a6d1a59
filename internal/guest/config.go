package guest

import (
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mortise-dev/mortise/abi"
)

// schemaURL names the schema inside the compiler; nothing is ever fetched.
const schemaURL = "mortise:config"

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
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaURL, jsonValue(g.desc.ConfigSchema)); err != nil {
		return fmt.Errorf("guest: module %q: %w: config_schema: %w", g.caller.Name(), ErrDescription, err)
	}
	schema, err := compiler.Compile(schemaURL)
	if err != nil {
		return fmt.Errorf("guest: module %q: %w: config_schema: %s", g.caller.Name(), ErrDescription, oneLine(err))
	}
	if config == nil {
		config = map[string]any{}
	}
	if err := schema.Validate(jsonValue(config)); err != nil {
		return fmt.Errorf("guest: module %q: %w: %s", g.caller.Name(), ErrConfig, oneLine(err))
	}
	return nil
}

// noLoader refuses every reference out of the schema.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a config schema may not refer to %q", url)
}

// jsonValue makes a dynamic value what the schema library expects, which knows
// neither int64 and uint64 nor bytes.
func jsonValue(v any) any {
	switch v := v.(type) {
	case int64:
		return int(v)
	case uint64:
		return float64(v)
	case []byte:
		return string(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = jsonValue(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = jsonValue(e)
		}
		return out
	default:
		return v
	}
}

// oneLine turns the library's tree of reasons into one sentence.
func oneLine(err error) string {
	var reasons []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimLeft(strings.TrimSpace(line), "- ")
		if line != "" && !strings.HasPrefix(line, "jsonschema validation failed") {
			reasons = append(reasons, line)
		}
	}
	return strings.Join(reasons, "; ")
}
