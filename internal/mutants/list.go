package main

import (
	"errors"
	"fmt"
	"strings"
)

// mutation is one change, and the test that must notice it.
type mutation struct {
	id, row, file, pkg, test string
	// count is how often the test runs, once when empty: for one that fails only
	// now and then.
	count string
	// dir is the folder of the module that the package is in, that of the list's
	// reader when empty.
	dir           string
	before, after string
}

// parse reads a list. A mutation is fields, one a line as "name: value", then a
// line "old:" and the old text, a line "new:" and the new text, and a line of
// dashes. Lines that begin with # stand between mutations.
func parse(list string) ([]mutation, error) {
	var out []mutation
	seen := map[string]bool{}
	m, into := mutation{}, (*[]string)(nil)
	var before, after []string
	for i, line := range strings.Split(strings.ReplaceAll(list, "\r\n", "\n"), "\n") {
		switch {
		case line == "---":
			m.before, m.after = strings.Join(before, "\n"), strings.Join(after, "\n")
			if err := m.check(seen); err != nil {
				return nil, fmt.Errorf("line %d: mutation %s: %w", i+1, m.id, err)
			}
			out = append(out, m)
			m, into, before, after = mutation{}, nil, nil, nil
		case line == "new:" && into == &before:
			into = &after
		case into != nil:
			*into = append(*into, line)
		case line == "old:":
			into = &before
		case line == "" || strings.HasPrefix(line, "#"):
		default:
			if err := m.field(line); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
		}
	}
	if m != (mutation{}) || into != nil {
		return nil, fmt.Errorf("mutation %s: the line of dashes after it is missing", m.id)
	}
	return out, nil
}

func (m *mutation) field(line string) error {
	name, value, _ := strings.Cut(line, ": ")
	fields := map[string]*string{"id": &m.id, "row": &m.row, "file": &m.file, "package": &m.pkg, "run": &m.test, "dir": &m.dir, "count": &m.count}
	f, ok := fields[name]
	if !ok || *f != "" {
		return fmt.Errorf("%q is no field, or stands twice; fields are id, row, file, package, run, dir, count, old and new", name)
	}
	*f = value
	return nil
}

func (m *mutation) check(seen map[string]bool) error {
	switch {
	case m.id == "" || m.row == "" || m.file == "" || m.pkg == "" || m.test == "":
		return errors.New("id, row, file, package and run are required")
	case seen[m.id]:
		return errors.New("the id is there twice")
	case strings.TrimSpace(m.before) == "" || m.before == m.after:
		return errors.New("the old text is empty, or is the new one")
	}
	seen[m.id] = true
	return nil
}
