package eval

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Recording is a file of conversations.
type Recording struct {
	// Name is the file's, without its folder.
	Name          string
	Conversations []Conversation
}

// NewSet finds the conversations that probes name. A name is, in this order,
//
//   - the id of a conversation,
//   - FILE:ID, a conversation of a file,
//   - FILE, all conversations of a file, joined in their order.
//
// FILE fits a recording when the words of the one, in any case and order, are all
// among those of the other: "Committee/jsonl/val.jsonl" fits committee-val.jsonl,
// "customer" fits memory_customer.json. A name that fits nothing, or more than one
// thing, is an error that names the probe.
func NewSet(name string, files []Recording, probes []Probe) (Set, error) {
	s := Set{Name: name, Probes: probes}
	known := make(map[string]bool)
	for _, p := range probes {
		if known[p.Conversation] {
			continue
		}
		known[p.Conversation] = true
		talk, err := find(files, p.Conversation)
		if err != nil {
			return s, fmt.Errorf("eval: set %q: probe %q: conversation %q: %w", name, p.ID, p.Conversation, err)
		}
		s.Conversations = append(s.Conversations, talk)
	}
	return s, nil
}

func find(files []Recording, name string) (Conversation, error) {
	var exact, within, whole []Conversation
	file, id := name, ""
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		file, id = name[:i], name[i+1:]
	}
	for _, f := range files {
		for _, c := range f.Conversations {
			if c.ID == name {
				exact = append(exact, c)
			}
			if id != "" && c.ID == id && fits(file, f.Name) {
				within = append(within, c)
			}
		}
		if fits(name, f.Name) {
			whole = append(whole, join(f.Conversations))
		}
	}
	for _, found := range [][]Conversation{exact, within, whole} {
		switch len(found) {
		case 0:
			continue
		case 1:
			return Conversation{ID: name, Messages: found[0].Messages}, nil
		}
		return Conversation{}, fmt.Errorf("%d recordings fit; name one as FILE:ID", len(found))
	}
	return Conversation{}, fmt.Errorf("no recording fits; there are %s", names(files))
}

// names lists some of what there is.
func names(files []Recording) string {
	const most = 8
	var out []string
	for _, f := range files {
		for _, c := range f.Conversations {
			if len(out) == most {
				return strings.Join(out, ", ") + " and others"
			}
			out = append(out, f.Name+":"+c.ID)
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// fits reports whether all words of one name are among those of the other.
func fits(a, b string) bool {
	words := func(s string) []string {
		return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	}
	within := func(a, b []string) bool {
		return len(a) > 0 && !slices.ContainsFunc(a, func(w string) bool { return !slices.Contains(b, w) })
	}
	x, y := words(a), words(b)
	return within(x, y) || within(y, x)
}

// join makes one conversation of many. Ids stay as they are unless they collide.
func join(list []Conversation) Conversation {
	if len(list) == 1 {
		return list[0]
	}
	var out Conversation
	seen := make(map[string]bool)
	for _, c := range list {
		for _, m := range c.Messages {
			if seen[m.ID] {
				m.ID = c.ID + "/" + m.ID
			}
			seen[m.ID] = true
			out.Messages = append(out.Messages, m)
		}
	}
	return out
}

// Whole makes a set of recordings as they are, with probes made from them. See
// [Derive]. The id of a conversation is FILE:ID.
func Whole(name string, files []Recording) Set {
	s := Set{Name: name}
	for _, f := range files {
		for _, c := range f.Conversations {
			c.ID = f.Name + ":" + c.ID
			if probes := Derive(c); len(probes) > 0 {
				s.Conversations = append(s.Conversations, c)
				s.Probes = append(s.Probes, probes...)
			}
		}
	}
	return s
}
