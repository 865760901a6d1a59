package install

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Found is a hook that is registered.
type Found struct {
	Event string
	// Command is the line, Ours reports whether it is one of the profile's; Client and Profile are the paths in it then.
	Command, Client, Profile string
	Ours                     bool
}

// settings is a file with hooks, being edited.
type settings struct {
	agent *Agent
	data  []byte
	root  *node
}

func (a *Agent) open(data []byte) (*settings, error) {
	s := &settings{agent: a, data: data}
	if strings.TrimSpace(strings.TrimPrefix(string(data), string(bom))) == "" {
		empty := "{}\n"
		if a.layout == copilot {
			empty = "{\n  \"version\": 1\n}\n"
		}
		s.data = slices.Concat(data, []byte(empty))
	}
	err := s.read()
	return s, err
}

// read parses the file, and checks what the agent would check.
func (s *settings) read() (err error) {
	if s.root, err = parse(s.data, s.agent.comments); err != nil {
		return err
	}
	if s.root.kind != '{' {
		return s.wrong(s.root, "the file is no JSON object")
	}
	hooks := s.root.get("hooks")
	if hooks == nil {
		return nil
	}
	if hooks.kind != '{' {
		return s.wrong(hooks, "hooks is no object")
	}
	for _, m := range hooks.members {
		if m.value.kind != '[' {
			return s.wrong(m.value, fmt.Sprintf("hooks.%s is no list", m.key))
		}
		for _, item := range m.value.items {
			if err := s.checkGroup(m.key, item); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *settings) wrong(n *node, reason string) error {
	return &SyntaxError{Line: lineOf(s.data, n.start), Reason: reason + "; the agent would ignore this and other hooks of the file"}
}

// checkGroup refuses an entry that would silence the hooks of a file.
func (s *settings) checkGroup(event string, n *node) error {
	if n.kind != '{' {
		return s.wrong(n, fmt.Sprintf("an entry of hooks.%s is no object", event))
	}
	if s.agent.layout != grouped {
		return s.checkHook(event, n)
	}
	if m := n.get("matcher"); m != nil && m.kind != '"' {
		return s.wrong(m, "the matcher is no string")
	}
	hooks := n.get("hooks")
	if hooks == nil || hooks.kind != '[' {
		return s.wrong(n, fmt.Sprintf("an entry of hooks.%s has no list of hooks", event))
	}
	for _, h := range hooks.items {
		if h.kind != '{' {
			return s.wrong(h, fmt.Sprintf("a hook of %s is no object", event))
		}
		if err := s.checkHook(event, h); err != nil {
			return err
		}
	}
	return nil
}

func (s *settings) checkHook(event string, h *node) error {
	for _, key := range []string{"type", "command", "bash", "url", "prompt"} {
		if v := h.get(key); v != nil && v.kind != '"' {
			return s.wrong(v, fmt.Sprintf("%s of a hook of %s is no string", key, event))
		}
	}
	if kind := h.get("type"); kind == nil && s.agent.layout == grouped {
		return s.wrong(h, fmt.Sprintf("a hook of %s has no type", event))
	} else if kind != nil && s.text(kind) == "command" && h.get("command") == nil && h.get("bash") == nil {
		return s.wrong(h, fmt.Sprintf("a hook of %s has no command", event))
	}
	for _, key := range []string{"timeout", "timeoutSec"} {
		v := h.get(key)
		if v == nil {
			continue
		}
		var number float64
		if json.Unmarshal(s.data[v.start:v.end], &number) != nil {
			return s.wrong(v, fmt.Sprintf("%s of a hook of %s is no number", key, event))
		}
	}
	return nil
}

func (s *settings) text(n *node) string {
	var out string
	if n != nil {
		_ = json.Unmarshal(s.data[n.start:n.end], &out)
	}
	return out
}

// commands are the lines of an entry.
func (s *settings) commands(n *node) []string {
	var out []string
	all := []*node{n}
	if hooks := n.get("hooks"); hooks != nil {
		all = hooks.items
	}
	for _, h := range all {
		for _, key := range []string{"command", "bash"} {
			if v := h.get(key); v != nil {
				out = append(out, s.text(v))
			}
		}
	}
	return out
}

// found lists the hooks of the file. Ours have the mark.
func (s *settings) found(mark *regexp.Regexp) []Found {
	var out []Found
	hooks := s.root.get("hooks")
	if hooks == nil {
		return nil
	}
	for _, m := range hooks.members {
		for _, item := range m.value.items {
			for _, c := range s.commands(item) {
				f := Found{Event: m.key, Command: c}
				if match := mark.FindStringSubmatch(c); match != nil {
					f.Ours, f.Client = true, unquote(match[1])
					if len(match) > 2 {
						f.Profile = unquote(match[2])
					}
				}
				out = append(out, f)
			}
		}
	}
	return out
}

// remove takes our entries out, but for those to keep, and then what became empty by that.
func (s *settings) remove(mark *regexp.Regexp, keep func(event, line string) bool) error {
	for again := true; again; {
		again = false
		hooks := s.root.get("hooks")
		if hooks == nil {
			return nil
		}
		for mi, m := range hooks.members {
			list, i := s.place(m.value, func(line string) bool { return mark.MatchString(line) && !keep(m.key, line) })
			switch {
			case list == nil:
				continue
			case len(list.items) > 1:
				s.data = remove(s.data, list, i)
			case len(hooks.members) > 1:
				s.data = remove(s.data, hooks, mi)
			default:
				s.data = remove(s.data, s.root, slices.IndexFunc(s.root.members, func(o member) bool { return o.key == "hooks" }))
			}
			if err := s.read(); err != nil {
				return err
			}
			again = true
			break
		}
	}
	return nil
}

// place finds an entry of ours in the list of an event: all of an item, or a hook in an item that has others, too.
func (s *settings) place(event *node, ours func(line string) bool) (list *node, i int) {
	alone := func(n *node) bool {
		lines := s.commands(n)
		return len(lines) == 1 && ours(lines[0])
	}
	if i = slices.IndexFunc(event.items, alone); i >= 0 {
		return event, i
	}
	for _, item := range event.items {
		if group := item.get("hooks"); group != nil {
			if i = slices.IndexFunc(group.items, alone); i >= 0 {
				return group, i
			}
		}
	}
	return nil, 0
}

// add adds an entry at the end of its event, so that the others keep their places.
func (s *settings) add(e Entry) error {
	hooks := s.root.get("hooks")
	if hooks == nil {
		s.data = insert(s.data, s.root, "hooks", map[string]any{e.Event: []any{s.agent.value(e)}})
		return s.read()
	}
	if list := hooks.get(e.Event); list != nil {
		s.data = insert(s.data, list, "", s.agent.value(e))
	} else {
		s.data = insert(s.data, hooks, e.Event, []any{s.agent.value(e)})
	}
	return s.read()
}

// Added is the file with exactly these entries of ours. Those that are there stay where they are.
func (a *Agent) Added(data []byte, mark *regexp.Regexp, entries []Entry) ([]byte, error) {
	s, err := a.open(data)
	if err != nil {
		return nil, err
	}
	err = s.remove(mark, func(event, line string) bool {
		return slices.ContainsFunc(entries, func(e Entry) bool { return e.Event == event && e.Line == line })
	})
	if err != nil {
		return nil, err
	}
	there := s.found(mark)
	for _, e := range entries {
		if slices.ContainsFunc(there, func(f Found) bool { return f.Event == e.Event && f.Command == e.Line }) {
			continue
		}
		if err := s.add(e); err != nil {
			return nil, err
		}
	}
	return s.data, nil
}

// Removed is the file without entries of ours.
func (a *Agent) Removed(data []byte, mark *regexp.Regexp) ([]byte, error) {
	s, err := a.open(data)
	if err != nil {
		return nil, err
	}
	return s.data, s.remove(mark, func(string, string) bool { return false })
}

// Hooks lists the hooks of a file.
func (a *Agent) Hooks(data []byte, mark *regexp.Regexp) ([]Found, error) {
	s, err := a.open(data)
	if err != nil {
		return nil, err
	}
	return s.found(mark), nil
}

// Profiles are those whose hooks a settings file has.
func (a *Agent) Profiles(data []byte) (out []string, err error) {
	if a.layout == script {
		return nil, nil
	}
	found, err := a.Hooks(data, mark(word, a.Dialect.Name))
	for _, f := range found {
		if f.Ours && !slices.Contains(out, f.Profile) {
			out = append(out, f.Profile)
		}
	}
	return out, err
}

// Switch reports whether a settings file has a switch that is on.
func Switch(data []byte, key string) (bool, error) {
	root, err := parse(data, true)
	if err != nil || root.kind != '{' {
		return false, err
	}
	n := root.get(key)
	return n != nil && string(data[n.start:n.end]) == "true", nil
}
