package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// resource names the schema inside the compiler; nothing is ever fetched.
const resource = "mortise:schema"

// ErrCostly means a schema that takes too much to compile, or to check a value against.
var ErrCostly = errors.New("asks too much")

// Schema is a JSON Schema that was compiled. It is safe for concurrent use. The zero Schema
// accepts any value.
type Schema struct {
	// schema is nil for a schema that takes anything.
	schema *jsonschema.Schema
	plans  map[*jsonschema.Schema]*plan
}

// Compile reads a schema, a dynamic value of the contract. Nil accepts any value. The library has no bounds of its own: a
// few lines can describe what takes it years. So a schema that is too large, or that expands to too much, is refused with
// [ErrCostly]. References to other documents are refused too: a stranger's schema must not make the host read files.
func Compile(document any) (*Schema, error) {
	if document == nil {
		return &Schema{}, nil
	}
	s, err := compile(plain(document))
	if err != nil && !errors.Is(err, ErrCostly) {
		return nil, errors.New(oneLine(err))
	}
	return s, err
}

func compile(document any) (*Schema, error) {
	if err := checkDocument(document); err != nil {
		return nil, err
	}
	patterns := patternBudget{left: maxPatterns}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	compiler.UseRegexpEngine(patterns.compile)
	if err := compiler.AddResource(resource, document); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(resource)
	if err != nil {
		return nil, err
	}
	patterns.compiled = true
	s := &Schema{schema: compiled, plans: map[*jsonschema.Schema]*plan{}}
	if err := s.prepare(compiled); err != nil {
		return nil, err
	}
	return s, nil
}

// Check returns an error that says in one line what is wrong with a value. A value that takes too many steps to check is
// refused with [ErrCostly], before it is checked.
func (s *Schema) Check(value any) error {
	if s.schema == nil {
		return nil
	}
	if value == nil {
		value = map[string]any{}
	}
	value = plain(value)
	w := work{plans: s.plans, left: maxWork}
	w.visit(s.schema, value, 0)
	if w.left < 0 {
		return fmt.Errorf("%w: checking the value takes more than %d steps; make the schema simpler, or the value smaller", ErrCostly, maxWork)
	}
	if err := s.schema.Validate(value); err != nil {
		return errors.New(oneLine(err))
	}
	return nil
}

// noLoader refuses every reference out of the schema.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema may not refer to %q", url)
}

// Bounds on regular expressions, whose compiled size may be a million times that of their text. Sizes count instructions
// and ranges of characters.
const (
	maxPatternBytes = 1_000
	maxPattern      = 10_000
	maxPatterns     = 200_000
)

// patternBudget compiles the regular expressions of a schema.
type patternBudget struct {
	// left is what the schema's own may still take, until all of them are compiled.
	left     int
	compiled bool
}

// pattern is a regular expression whose size is known.
type pattern struct {
	*regexp.Regexp

	size int
}

// compile implements [jsonschema.RegexpEngine]. A value of the format "regex" comes here too, when it is checked.
func (b *patternBudget) compile(text string) (jsonschema.Regexp, error) {
	if len(text) > maxPatternBytes {
		return nil, fmt.Errorf("%w: a pattern has %d bytes, and %d are allowed; make it shorter", ErrCostly, len(text), maxPatternBytes)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := patternSize(parsed)
	if size > maxPattern {
		return nil, fmt.Errorf("%w: the pattern %.40q takes more than %d instructions; repeat less in it", ErrCostly, text, maxPattern)
	}
	if !b.compiled {
		if b.left -= size; b.left < 0 {
			return nil, fmt.Errorf("%w: all patterns of the schema take more than %d instructions; use fewer", ErrCostly, maxPatterns)
		}
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{Regexp: compiled, size: size}, nil
}

// patternSize estimates the compiled size of a regular expression from above, up to a little more than maxPattern.
func patternSize(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		size = min(size+patternSize(sub), maxPattern+1)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min+1, re.Max)
	}
	return min(size, maxPattern+1)
}

// plain makes a dynamic value what the library expects, which knows neither int64 and
// uint64 nor bytes.
func plain(v any) any {
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
			out[i] = plain(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = plain(e)
		}
		return out
	default:
		return v
	}
}
