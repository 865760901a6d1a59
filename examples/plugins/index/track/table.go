package track

import (
	"cmp"
	"slices"
)

// Table is a bounded map of entries, kept in state as a map of maps. The entries
// that were touched longest ago, by step, go first.
type Table struct {
	max     int
	old     map[string]any
	changed map[string]any
}

// NewTable opens the table that a state value holds; anything else is empty.
func NewTable(state any, limit int) *Table {
	m, _ := state.(map[string]any)
	return &Table{max: limit, old: m, changed: map[string]any{}}
}

// Touch counts name under a counter and notes the step. A nil extra field leaves
// that field as it was.
func (t *Table) Touch(name, counter string, step int, extra map[string]any) {
	if name == "" {
		return
	}
	entry := map[string]any{}
	if e, ok := t.changed[name].(map[string]any); ok {
		entry = e
	} else if e, ok := t.old[name].(map[string]any); ok {
		for k, v := range e {
			entry[k] = v
		}
	}
	entry[counter] = integer(entry[counter]) + 1
	entry["step"] = int64(step)
	for k, v := range extra {
		if v != nil {
			entry[k] = v
		}
	}
	t.changed[name] = entry
}

// Changes are the entries to merge into the state, and the names to remove from
// it so that it stays within its limit.
func (t *Table) Changes() (set map[string]any, remove []string) {
	over := -t.max
	names := make([]string, 0, len(t.old)+len(t.changed))
	for n := range t.old {
		names = append(names, n)
	}
	for n := range t.changed {
		if _, ok := t.old[n]; !ok {
			names = append(names, n)
		}
	}
	over += len(names)
	if over <= 0 {
		return t.changed, nil
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(t.step(a), t.step(b)), cmp.Compare(a, b))
	})
	for _, n := range names[:over] {
		delete(t.changed, n)
		if _, ok := t.old[n]; ok {
			remove = append(remove, n)
		}
	}
	return t.changed, remove
}

func (t *Table) step(name string) int64 {
	if e, ok := t.changed[name].(map[string]any); ok {
		return integer(e["step"])
	}
	e, _ := t.old[name].(map[string]any)
	return integer(e["step"])
}

func integer(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}
