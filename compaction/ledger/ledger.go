package ledger

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Ledger keeps the state of one conversation.
type Ledger struct {
	s     abi.Ledger
	names *nameTable

	files    map[string]int // by path
	bases    map[string]int // the newest file of a base name
	commands map[string]int // by key
	values   map[string]int // by owner and key
	kinds    map[string]kind

	checks, passStarts    []string
	failStarts, failParts []sign
	cues                  cues
	said                  []struct {
		kind string
		cues []string
	}
}

// cues are the English words that the keeper looks for.
type cues struct{ rule, strong, finding, filler, notUser, summary, refusal, failed []string }

// New returns an empty ledger.
func New() *Ledger { return From(abi.Ledger{Version: abi.LedgerVersion}) }

// From returns a ledger that continues a state. It takes a copy. A state of another version is
// read as far as its fields are known.
func From(state abi.Ledger) *Ledger {
	l := &Ledger{
		s: clone(&state), kinds: newKinds(), said: statementCues(), checks: checkers(), passStarts: passStarts(), failStarts: failStarts(), failParts: failParts(),
		cues: cues{rule: ruleCues(), strong: strongCues(), finding: findingCues(), filler: fillers(), notUser: notUser(), summary: summaryStarts(), refusal: refusals(), failed: errorStarts()},
	}
	l.s.Version, l.s.Talk.Words = abi.LedgerVersion, nil
	l.names = newNameTable(l.s.Names)
	l.index()
	return l
}

// index builds the maps.
func (l *Ledger) index() {
	l.files, l.bases = make(map[string]int), make(map[string]int)
	for i := range l.s.Work.Files {
		l.files[l.s.Work.Files[i].Path] = i
		l.bases[base(l.s.Work.Files[i].Path)] = i
	}
	l.commands = make(map[string]int)
	for i := range l.s.Work.Commands {
		l.commands[l.s.Work.Commands[i].Key] = i
	}
	l.values = make(map[string]int)
	for i := range l.s.Work.Values {
		v := &l.s.Work.Values[i]
		l.values[v.Owner+"\x00"+v.Key] = i
	}
}

// State returns a copy of the state.
func (l *Ledger) State() abi.Ledger {
	l.s.Names = l.names.list
	return clone(&l.s)
}

// clone copies all lists of a state.
func clone(s *abi.Ledger) abi.Ledger {
	out := *s
	out.Steps, out.Names, out.Calls = slices.Clone(s.Steps), slices.Clone(s.Names), slices.Clone(s.Calls)
	t, w := &out.Talk, &out.Work
	t.Requests = slices.Clone(t.Requests)
	for i := range t.Requests {
		r := &t.Requests[i]
		r.Question, r.Outcome = clonePointer(r.Question), clonePointer(r.Outcome)
		r.Files, r.Commits = slices.Clone(r.Files), slices.Clone(r.Commits)
	}
	t.Rules, t.Findings, t.Tasks, t.Statements = slices.Clone(t.Rules), slices.Clone(t.Findings), slices.Clone(t.Tasks), slices.Clone(t.Statements)
	t.Plan, t.Question, t.Last, t.Before = clonePointer(t.Plan), clonePointer(t.Question), clonePointer(t.Last), clonePointer(t.Before)
	w.Files, w.Commands, w.Errors = slices.Clone(w.Files), slices.Clone(w.Commands), slices.Clone(w.Errors)
	for i := range w.Files {
		w.Files[i].Names = slices.Clone(w.Files[i].Names)
	}
	for i := range w.Errors {
		w.Errors[i].Edits = slices.Clone(w.Errors[i].Edits)
	}
	w.Commits, w.Lookups, w.Values = slices.Clone(w.Commits), slices.Clone(w.Lookups), slices.Clone(w.Values)
	return out
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// Add reads messages, in the order of the log.
func (l *Ledger) Add(messages ...abi.Message) {
	for i := range messages {
		l.add(&messages[i])
	}
}

func (l *Ledger) add(m *abi.Message) {
	l.s.Messages++
	n := l.s.Messages
	text := m.Text()
	l.s.Bytes += int64(len(text))
	switch m.Role {
	case abi.RoleAssistant:
		l.agentText(n, text)
		for i := range m.ToolCalls {
			l.call(n, &m.ToolCalls[i])
		}
	case abi.RoleTool:
		l.result(n, m, text)
	case abi.RoleUser:
		if m.Visibility == abi.VisibilityInternal {
			l.shown(n, text)
			return
		}
		l.userText(n, text)
	case abi.RoleSystem:
		l.system(n, text)
	default:
		l.shown(n, text)
	}
}

// shown reads a text that neither the user nor the agent wrote.
func (l *Ledger) shown(n int, text string) { l.names.read(text, n, byResult, "") }

// system reads instructions and summaries.
func (l *Ledger) system(n int, text string) {
	if l.summary(n, text) {
		return
	}
	l.shown(n, text)
	if l.s.Folder == "" {
		l.s.Folder = folderIn(text)
	}
}

// summary reads a summary of what came before this log. It reports false for other texts.
func (l *Ledger) summary(n int, text string) bool {
	if !startsWith(text, l.cues.summary) {
		return false
	}
	if len(l.s.Talk.Requests) == 0 && len(l.s.Work.Files) == 0 {
		if old, ok := ReadBack(text); ok {
			l.restore(old)
			return true
		}
	}
	l.shown(n, text)
	l.before(n, text)
	return true
}

// Before notes what another program wrote about the conversation before the messages that are added. A
// rendering of a ledger is for [ReadBack].
func (l *Ledger) Before(text string) {
	l.shown(l.s.Messages, text)
	l.before(l.s.Messages, text)
}

func (l *Ledger) before(n int, text string) {
	if _, from, ok := strings.Cut(text, "Primary Request and Intent"); ok {
		text = strings.TrimLeft(from, ":* \n")
	}
	l.s.Talk.Before = &abi.LedgerText{Message: n, By: "summary", Text: clip(text, maxText), Size: sizeOf(text, maxText)}
}

// restore continues the ledger of a summary, whose messages count as read. The summary itself is the
// message after them.
func (l *Ledger) restore(old abi.Ledger) {
	old.Messages++
	old.Bytes += l.s.Bytes
	for i := range l.names.list {
		if len(old.Names) < maxNames {
			old.Names = append(old.Names, l.names.list[i])
		}
	}
	if old.Folder == "" {
		old.Folder = l.s.Folder
	}
	*l = *From(old)
}

// folderIn finds the working directory in the instructions of an agent.
func folderIn(text string) string {
	for _, mark := range []string{"Working directory: ", "working directory: ", "Current working directory: ", "<cwd>", "cwd: "} {
		_, rest, ok := strings.Cut(text, mark)
		if !ok || !strings.HasPrefix(rest, "/") {
			continue
		}
		n := strings.IndexAny(rest, " \n\t<\"'`")
		if n < 0 {
			n = len(rest)
		}
		if n <= maxPath {
			return strings.Clone(strings.TrimRight(rest[:n], "/."))
		}
	}
	return ""
}

func startsWith(text string, starts []string) bool {
	text = strings.TrimLeft(text[:min(len(text), 256)], " \t\r\n")
	for _, s := range starts {
		if strings.HasPrefix(text, s) {
			return true
		}
	}
	return false
}

// base is the last element of a path.
func base(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// appendBounded appends to a list of at most n, of which the oldest quarter is dropped when it is
// full.
func appendBounded[T any](list []T, v T, n int) []T {
	if len(list) >= n {
		list = append(list[:0], list[n/4:]...)
	}
	return append(list, v)
}
