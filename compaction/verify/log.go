package verify

import (
	"encoding/json"
	"path"
	"strings"
	"unicode"

	"github.com/mortise-dev/mortise/abi"
)

// maxText bounds how much of a log is searched for names and words, in bytes, the newest part.
const maxText = 16 << 20

// Log is what a summary is held against.
type Log struct {
	changed, created map[string]bool
	commands         map[string]*runs
	// user is what the user said, all what anyone said or did, as words between blanks.
	user, all string
	patterns  *patterns
}

// runs reports what the runs of a command may have come to.
type runs struct{ passed, failed bool }

// New reads a log, with the ledger of it. A summary of what came before the log counts as said.
func New(messages []abi.Message, state *abi.Ledger, previous string) *Log {
	l := &Log{changed: map[string]bool{}, created: map[string]bool{}, commands: map[string]*runs{}, patterns: newPatterns()}
	for i := range state.Work.Files {
		f := &state.Work.Files[i]
		if f.Changes > 0 {
			l.changed[path.Clean(f.Path)] = true
		}
		if f.Created > 0 || f.Verb != "" {
			l.created[path.Clean(f.Path)] = true
		}
	}
	for i := range state.Work.Commands {
		c := &state.Work.Commands[i]
		// Of earlier runs only the number is known; an error is kept by itself.
		l.commands[c.Key] = &runs{passed: c.Outcome != abi.CommandFailed || c.Runs > 1, failed: c.Outcome != abi.CommandOK}
	}
	for i := range state.Work.Errors {
		if c := l.commands[state.Work.Errors[i].Key]; c != nil {
			c.failed = true
		}
	}
	user, all := tail{}, tail{}
	all.add(previous)
	user.add(previous)
	for i := range messages {
		m := &messages[i]
		text := m.Text()
		all.add(text)
		if m.Role == abi.RoleUser || m.Role == abi.RoleTool && ofUser(text) {
			user.add(text)
		}
		for _, c := range m.ToolCalls {
			all.add(c.Name)
			all.add(arguments(c.Arguments))
		}
	}
	l.user, l.all = user.String(), all.String()
	return l
}

// ofUser reports a result that has words of the user: a reason or an answer.
func ofUser(text string) bool {
	head := strings.ToLower(text[:min(len(text), 400)])
	for _, start := range []string{"user said", "user has answered", "user doesn't want", "user provided"} {
		if strings.Contains(head, start) {
			return true
		}
	}
	return false
}

// arguments are the values of a call, as they were before they were encoded.
func arguments(v any) string {
	switch v := v.(type) {
	case string:
		var inner any
		if strings.HasPrefix(v, "{") && json.Unmarshal([]byte(v), &inner) == nil {
			return arguments(inner)
		}
		return v
	case map[string]any:
		var b strings.Builder
		for key, value := range v {
			b.WriteString(key + " " + arguments(value) + " ")
		}
		return b.String()
	case []any:
		var b strings.Builder
		for _, value := range v {
			b.WriteString(arguments(value) + " ")
		}
		return b.String()
	case nil:
		return ""
	}
	out, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(out)
}

// tail collects texts as words, and forgets the oldest half when it is full.
type tail struct{ b []byte }

func (t *tail) add(text string) {
	t.b = append(t.b, words(text)...)
	if len(t.b) > maxText {
		t.b = append(t.b[:0], t.b[len(t.b)/2:]...)
	}
}

func (t *tail) String() string { return string(t.b) }

// words are the words of a text, in lower case, with blanks around each: signs and line breaks do not count.
func words(s string) string {
	fields := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(fields) == 0 {
		return ""
	}
	return " " + strings.Join(fields, " ") + " "
}

// holds reports that a text in words has all parts of a quotation. An ellipsis and a remark in brackets part it.
func (p *patterns) holds(in, quote string) bool {
	for _, part := range p.cut.Split(quote, -1) {
		if !strings.Contains(in, words(part)) {
			return false
		}
	}
	return true
}

// has finds a file by its name, or by the end of it.
func has(files map[string]bool, file string) bool {
	file = path.Clean(file)
	if files[file] {
		return true
	}
	for known := range files {
		if strings.HasSuffix(known, "/"+file) || strings.HasSuffix(file, "/"+known) {
			return true
		}
	}
	return false
}
