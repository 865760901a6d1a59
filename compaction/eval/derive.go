package eval

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Bounds on probes that are made from a conversation.
const (
	perKind    = 40      // probes of each kind
	maxDerived = 8 << 20 // bytes of a conversation that are read
)

// Derive makes probes from a conversation, for sessions without written probes
// of their own. It takes URLs, paths, error lines, identifiers and numbers that
// matter: those that a user wrote, that a call's arguments hold, or that at least
// two messages hold; of an error line one message is enough. Of each kind at most 40
// are taken, at equal distances in the order in which they come up, so
// that no part of the conversation has more weight than another. They have no
// question: what grounds them are the sentences that hold them.
func Derive(c Conversation) []Probe {
	var out []Probe
	seen := make(map[string]bool)
	for _, k := range kinds() {
		for _, s := range spread(k.matter(c.Messages, seen), perKind) {
			out = append(out, Probe{
				ID: fmt.Sprintf("%s/%s/%s", c.ID, k.name, s), Conversation: c.ID, Answers: []string{s},
			})
		}
	}
	return out
}

// kind is a sort of string that a summary should keep.
type kind struct {
	name    string
	pattern *regexp.Regexp
	least   int // messages
}

// kinds are in the order of precedence: a string counts for the first that it
// fits.
func kinds() []kind {
	return []kind{
		{"url", regexp.MustCompile(`https?://[^\s"'<>)\]\\]{4,120}`), 2},
		{"error", regexp.MustCompile(`(?m)\b(?:[A-Z]\w*(?:Error|Exception)|panic|fatal|error|FAIL):[ \t][^\n"]{8,100}`), 1},
		{"path", regexp.MustCompile(`(?:\.{0,2}/)?(?:[\w@.-]+/)+[\w-]+\.[A-Za-z]\w{0,7}\b`), 2},
		{"identifier", regexp.MustCompile(`\b(?:[a-z]+[A-Z]\w{3,40}|[A-Z][a-z0-9]+[A-Z]\w{1,40}|[A-Za-z]\w*_\w{2,40}|[A-Z]{1,6}\d{2,8})\b`), 2},
		{"number", regexp.MustCompile(`\b\d{1,3}(?:,\d{3})+(?:\.\d+)?\b|\b\d+\.\d+(?:\.\d+)*\b|\b\d{4}-\d\d-\d\d\b|\b\d{4,12}\b`), 2},
	}
}

// matter lists what matters of a kind, in the order in which it comes up. What is
// in seen is left out.
func (k *kind) matter(messages []abi.Message, seen map[string]bool) []string {
	t := &mentions{kind: k, known: make(map[string]*mention)}
	for i := range messages {
		m := &messages[i]
		t.read(m.Text(), i, m.Role == abi.RoleUser)
		for _, c := range m.ToolCalls {
			t.read(arguments(c.Arguments), i, true)
		}
	}
	var out []string
	for _, s := range t.order {
		if t.known[s].messages >= k.least && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// mentions counts the messages that hold each string of a kind.
type mentions struct {
	kind  *kind
	known map[string]*mention
	order []string
	bytes int
}

type mention struct{ messages, last int }

// read counts what the text of a message holds; what matters by itself counts
// often enough.
func (t *mentions) read(text string, message int, matters bool) {
	t.bytes += len(text)
	if t.bytes > maxDerived {
		return
	}
	for _, s := range t.kind.pattern.FindAllString(text, -1) {
		s = strings.TrimSpace(strings.TrimRight(s, ".,;:"))
		e, ok := t.known[s]
		if !ok {
			e = &mention{last: -1}
			t.known[s] = e
			t.order = append(t.order, s)
		}
		if e.last != message {
			e.messages++
			e.last = message
		}
		if matters {
			e.messages = max(e.messages, t.kind.least)
		}
	}
}

// spread takes n of a list at equal distances.
func spread(list []string, n int) []string {
	if len(list) <= n {
		return list
	}
	out := make([]string, n)
	for i := range out {
		out[i] = list[i*len(list)/n]
	}
	return out
}
