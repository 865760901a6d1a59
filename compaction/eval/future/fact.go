package future

import (
	"regexp"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Fact is a string that an agent may need again.
type Fact struct {
	Text string `json:"text"`
	// forms are shorter ones that the lenient score takes as well.
	forms []string
}

// Length of a fact, in bytes.
const (
	minFact = 5
	maxFact = 160
)

// factPattern finds, in the order of precedence: URLs, paths, file names and
// qualified names, hyphenated names, names with underscores or inner capitals,
// hashes, and long numbers.
func factPattern() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		`https?://[^\s"'<>)\]]+`,
		`(?:[\w.@~-]*/)+[\w.@-]+`,
		`\b[\w-]+\.[a-z]{1,5}\b`,
		`\b[A-Za-z]+(?:-[A-Za-z0-9]+)+\b`,
		`\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b`,
		`\b[a-z]+[A-Z]\w+`,
		`\b[A-Z][a-z0-9]+[A-Z]\w+`,
		`\b[0-9a-f]{7,40}\b`,
		`\b\d{4,}\b`,
	}, "|"))
}

// facts returns the facts of a text, with repetitions.
func facts(pattern *regexp.Regexp, text string) []string {
	var out []string
	for _, s := range pattern.FindAllString(text, -1) {
		s = strings.Trim(s, ".,:;-")
		if len(s) >= minFact && len(s) <= maxFact {
			out = append(out, s)
		}
	}
	return out
}

// Needed returns the facts of before that the agent writes into a tool call of
// after, before the user or a tool shows them again, in the order of their use.
func Needed(before, after []abi.Message) []Fact {
	pattern := factPattern()
	known := log(before)
	var shown strings.Builder
	var out []Fact
	used := make(map[string]bool)
	for i := range after {
		m := &after[i]
		if m.Role != abi.RoleAssistant {
			shown.WriteString(m.Text() + "\n")
			continue
		}
		for _, c := range m.ToolCalls {
			for _, s := range facts(pattern, values(c.Arguments)) {
				if used[s] {
					continue
				}
				used[s] = true
				if strings.Contains(known, s) && !strings.Contains(shown.String(), s) {
					out = append(out, newFact(s))
				}
			}
		}
	}
	return out
}

func newFact(s string) Fact {
	f := Fact{Text: s}
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == '/' })
	if !strings.Contains(s, "/") || len(parts) == 0 {
		return f
	}
	if len(parts) >= 2 {
		f.forms = append(f.forms, strings.Join(parts[len(parts)-2:], "/"))
	}
	if name := parts[len(parts)-1]; len(name) >= minFact {
		f.forms = append(f.forms, name)
	}
	return f
}

// Strict reports whether a text holds the fact word for word.
func (f *Fact) Strict(text string) bool { return strings.Contains(text, f.Text) }

// Lenient reports whether a text holds the fact, the last two parts of it as a
// path, or its file name.
func (f *Fact) Lenient(text string) bool {
	if f.Strict(text) {
		return true
	}
	for _, s := range f.forms {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// log writes messages out, arguments of calls by their values alone.
func log(messages []abi.Message) string {
	var b strings.Builder
	for i := range messages {
		b.WriteString(messages[i].Text() + "\n")
		for _, c := range messages[i].ToolCalls {
			b.WriteString(values(c.Arguments) + "\n")
		}
	}
	return b.String()
}

// values are the strings among the arguments of a call, in the order of their
// names.
func values(v any) string {
	var b strings.Builder
	write(&b, v)
	return b.String()
}
