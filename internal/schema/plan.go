package schema

import (
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxExpansion bounds how many schemas apply to one value, with all references replaced by what they refer to.
const maxExpansion = 10_000

// plan is what is known of a schema before there is a value.
type plan struct {
	// same are the schemas that apply to the same value.
	same []*jsonschema.Schema
	// weight is how many steps the schema takes for a value, apart from these and from those that apply to its parts.
	weight int
	// expansion is how many schemas apply to the value, itself included.
	expansion int
}

// prepare plans a schema and all that it refers to, and refuses those that expand to too much.
func (s *Schema) prepare(first *jsonschema.Schema) error {
	for todo := []*jsonschema.Schema{first}; len(todo) > 0; {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, done := s.plans[next]; done {
			continue
		}
		if next.DynamicRef != nil || next.RecursiveRef != nil {
			return fmt.Errorf("%w: the schema uses $dynamicRef or $recursiveRef, whose cost cannot be bounded; use $ref", ErrCostly)
		}
		p := &plan{same: onValue(next), weight: weightOf(next)}
		s.plans[next] = p
		todo = append(append(todo, p.same...), onParts(next)...)
	}
	counted := map[*jsonschema.Schema]bool{}
	for one := range s.plans {
		if err := s.expand(one, counted); err != nil {
			return err
		}
	}
	return nil
}

// expand counts the schemas that apply to the same value as one.
func (s *Schema) expand(one *jsonschema.Schema, counted map[*jsonschema.Schema]bool) error {
	p := s.plans[one]
	if done, begun := counted[one]; begun {
		if !done {
			return fmt.Errorf("%w: the schema refers to itself for the same value; let it refer to itself only for a part of the value", ErrCostly)
		}
		return nil
	}
	counted[one] = false
	p.expansion = 1
	for _, next := range p.same {
		if err := s.expand(next, counted); err != nil {
			return err
		}
		if p.expansion += s.plans[next].expansion; p.expansion > maxExpansion {
			return fmt.Errorf("%w: the schema expands to more than %d schemas for one value; use fewer references in allOf, anyOf and the like",
				ErrCostly, maxExpansion)
		}
	}
	counted[one] = true
	return nil
}

// onValue lists the schemas that apply to the value that a schema applies to.
func onValue(s *jsonschema.Schema) []*jsonschema.Schema {
	out := present(s.Ref, s.Not, s.If, s.Then, s.Else)
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		out = append(out, list...)
	}
	for _, one := range s.DependentSchemas {
		out = append(out, one)
	}
	for _, one := range s.Dependencies {
		out = append(out, schemas(one)...)
	}
	return out
}

// onParts lists the schemas that apply to parts of the value that a schema applies to.
func onParts(s *jsonschema.Schema) []*jsonschema.Schema {
	out := present(s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems)
	for _, one := range s.Properties {
		out = append(out, one)
	}
	for _, one := range s.PatternProperties {
		out = append(out, one)
	}
	out = append(out, s.PrefixItems...)
	for _, some := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		out = append(out, schemas(some)...)
	}
	return out
}

func present(some ...*jsonschema.Schema) []*jsonschema.Schema {
	var out []*jsonschema.Schema
	for _, s := range some {
		if s != nil {
			out = append(out, s)
		}
	}
	return out
}

// schemas are those in a field that may hold several kinds of values.
func schemas(field any) []*jsonschema.Schema {
	switch field := field.(type) {
	case *jsonschema.Schema:
		return present(field)
	case []*jsonschema.Schema:
		return field
	}
	return nil
}

// numberWeight is how many steps an operation on numbers takes: the library writes them as text and reads fractions.
const numberWeight = 16

// weightOf is how many steps a schema takes for a value, whatever that is.
func weightOf(s *jsonschema.Schema) int {
	weight := 4 + len(s.Required)
	for _, bound := range []bool{s.Minimum != nil, s.Maximum != nil, s.ExclusiveMinimum != nil, s.ExclusiveMaximum != nil, s.MultipleOf != nil} {
		if bound {
			weight += numberWeight
		}
	}
	for _, names := range s.DependentRequired {
		weight += 1 + len(names)
	}
	for _, one := range s.Dependencies {
		if names, ok := one.([]string); ok {
			weight += 1 + len(names)
		}
	}
	if s.Const != nil {
		weight += compareWeight(*s.Const)
	}
	if s.Enum != nil {
		for _, v := range s.Enum.Values {
			weight += compareWeight(v)
		}
	}
	return weight
}

// compareWeight is how many steps it takes to compare a value with another one.
func compareWeight(v any) int {
	weight := 1
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			weight += compareWeight(e)
		}
	case map[string]any:
		for _, e := range v {
			weight += 1 + compareWeight(e)
		}
	case string:
		weight += len(v) / textStep
	case nil, bool:
	default:
		weight = numberWeight
	}
	return weight
}
