package schema

import "github.com/santhosh-tekuri/jsonschema/v6"

// Bounds on checking one value. A step takes the library about half a microsecond at most.
const (
	maxWork = 2_000_000
	// maxWorkDepth bounds schemas in one another, for a value and its parts.
	maxWorkDepth = 2_000
	// textStep is how many bytes of text are worth a step, patternStep how many of them times the size of a pattern.
	textStep, patternStep = 64, 64
	// depthStep is how many schemas around one make it take a step more: a reason to refuse a value names the way to it.
	depthStep = 8
	// formatWeight is how many steps a format takes, apart from the length of the text.
	formatWeight = 16
	// uniqueWeight is how often each item of a list is compared that must be unique.
	uniqueWeight = 20
)

// work counts the steps that the library takes at most to check a value, up to a bound: it goes wherever the library may
// go, and compares nothing. The count depends on the schema and the value alone.
type work struct {
	plans map[*jsonschema.Schema]*plan
	// left is negative when the value takes too many steps.
	left int
}

// visit counts the steps of a schema for a value.
func (w *work) visit(s *jsonschema.Schema, v any, depth int) {
	p := w.plans[s]
	if w.left -= p.weight + depth/depthStep; depth > maxWorkDepth {
		w.left = -1
	}
	for _, one := range p.same {
		if w.left < 0 {
			return
		}
		w.visit(one, v, depth+1)
	}
	switch v := v.(type) {
	case map[string]any:
		w.object(s, v, depth+1)
	case []any:
		w.array(s, v, depth+1)
	case string:
		w.text(s, v)
	}
}

func (w *work) object(s *jsonschema.Schema, v map[string]any, depth int) {
	w.left -= len(v)
	for name, e := range v {
		if w.left < 0 {
			return
		}
		known := false
		if one := s.Properties[name]; one != nil {
			known = true
			w.visit(one, e, depth)
		}
		for re, one := range s.PatternProperties {
			w.match(re, name)
			if w.left >= 0 && re.MatchString(name) {
				known = true
				w.visit(one, e, depth)
			}
		}
		if !known {
			w.all(schemas(s.AdditionalProperties), e, depth)
		}
		w.all(present(s.UnevaluatedProperties), e, depth)
		w.all(present(s.PropertyNames), name, depth)
	}
}

func (w *work) array(s *jsonschema.Schema, v []any, depth int) {
	w.left -= len(v)
	if s.UniqueItems {
		w.left -= uniqueWeight * compareWeight(v)
	}
	everywhere := present(s.Items2020, s.Contains, s.UnevaluatedItems)
	everywhere = append(everywhere, schemas(s.AdditionalItems)...)
	places := s.PrefixItems
	if list, ok := s.Items.([]*jsonschema.Schema); ok {
		places = list
	} else {
		everywhere = append(everywhere, schemas(s.Items)...)
	}
	for n, e := range v {
		if w.left < 0 {
			return
		}
		if n < len(places) {
			w.visit(places[n], e, depth)
		}
		w.all(everywhere, e, depth)
	}
}

func (w *work) all(some []*jsonschema.Schema, v any, depth int) {
	for _, one := range some {
		if w.left < 0 {
			return
		}
		w.visit(one, v, depth)
	}
}

func (w *work) text(s *jsonschema.Schema, v string) {
	w.left -= len(v) / textStep
	if s.Pattern != nil {
		w.match(s.Pattern, v)
	}
	if s.Format != nil {
		w.left -= formatWeight + len(v)/textStep
		if s.Format.Name == "regex" {
			w.left -= maxPattern // it is compiled
		}
	}
}

// match counts the steps of a pattern on a text.
func (w *work) match(re jsonschema.Regexp, text string) {
	size := maxPattern
	if known, ok := re.(*pattern); ok {
		size = known.size
	}
	w.left -= 1 + size*(len(text)+1)/patternStep
}
