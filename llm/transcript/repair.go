package transcript

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/mortise-dev/mortise/abi"
)

const missingResult = "[no result was recorded]"

// slot is where the result of one tool call belongs.
type slot struct {
	node, call int
}

// node is a message that is not a result, and the results of its calls.
type node struct {
	entry    Entry
	results  []*Entry
	answered int
	// last is the highest call answered so far, for noting disorder once.
	last      int
	unordered bool
}

// repairer makes a recorded conversation structurally valid.
type repairer struct {
	nodes []node
	notes []Note
	// open holds the unanswered calls by recorded id, the next to be answered at
	// the end.
	open map[string][]slot
	// seen are the recorded call ids, used those given out.
	seen map[string]bool
	used uniquer
}

// repair returns the entries with each call answered exactly once, directly
// after its message and in the order of the calls. Every change is noted.
func repair(d *draft) ([]Entry, []Note) {
	r := &repairer{notes: d.notes, open: map[string][]slot{}, seen: map[string]bool{}, used: uniquer{}}
	size := 0
	for i := range d.entries {
		if d.entries[i].Message.Role == abi.RoleTool {
			r.result(&d.entries[i])
			continue
		}
		r.message(d.entries[i])
		size += 1 + len(d.entries[i].Message.ToolCalls)
	}
	out := make([]Entry, 0, size)
	for i := range r.nodes {
		out = append(out, r.nodes[i].entry)
		for k, e := range r.nodes[i].results {
			call := &r.nodes[i].entry.Message.ToolCalls[k]
			if e == nil {
				e = r.missing(&r.nodes[i].entry, call)
			}
			e.Message.ToolCallID, e.ToolName = call.ID, call.Name
			if len(e.Message.Content) == 0 {
				e.Message.Content = []abi.ContentBlock{abi.Text("")}
			}
			out = append(out, *e)
		}
	}
	return out, r.notes
}

func (r *repairer) note(line int, format string, args ...any) {
	r.notes = append(r.notes, Note{Line: line, What: fmt.Sprintf(format, args...)})
}

func (r *repairer) message(e Entry) {
	at := len(r.nodes)
	calls := e.Message.ToolCalls
	// In reverse, so that of two calls with one id the first is answered first.
	for i, call := range slices.Backward(calls) {
		r.open[call.ID] = append(r.open[call.ID], slot{node: at, call: i})
	}
	for i := range calls {
		recorded := calls[i].ID
		calls[i].ID = r.callID(recorded)
		if recorded != "" && calls[i].ID != recorded {
			what := "was used before"
			if len(recorded) > maxIDLength {
				what = "is too long"
			}
			r.note(e.Line, "call id %s %s, it is now %s", clip(recorded, 64), what, calls[i].ID)
		}
		r.seen[recorded] = true
	}
	r.nodes = append(r.nodes, node{entry: e, results: make([]*Entry, len(calls)), last: -1})
}

func (r *repairer) callID(recorded string) string {
	if recorded == "" || len(recorded) > maxIDLength {
		recorded = fmt.Sprintf("call_%06d", len(r.used)+1)
	}
	return r.used.take(recorded)
}

func (r *repairer) result(e *Entry) {
	s, ok := r.take(e)
	if !ok {
		what := "tool result without a call dropped"
		if r.seen[e.Message.ToolCallID] && e.Message.ToolCallID != "" {
			what = "second result of a tool call dropped"
		}
		r.note(e.Line, "%s (call id %q)", what, clip(e.Message.ToolCallID, maxIDLength))
		return
	}
	n := &r.nodes[s.node]
	switch {
	case s.node != len(r.nodes)-1:
		r.note(e.Line, "result of call %s came late, moved to its call in line %d", n.entry.Message.ToolCalls[s.call].ID, n.entry.Line)
	case s.call < n.last && !n.unordered:
		n.unordered = true
		r.note(e.Line, "results put in the order of the calls in line %d", n.entry.Line)
	}
	n.last = max(n.last, s.call)
	n.results[s.call] = e
	n.answered++
}

// take finds the call that a result answers: by id, newest message first; when
// the result has no id, by name among the calls of the newest message.
func (r *repairer) take(e *Entry) (slot, bool) {
	id := e.Message.ToolCallID
	if id == "" {
		return r.takeUnnamed(e.ToolName)
	}
	for open := r.open[id]; len(open) > 0; open = r.open[id] {
		s := open[len(open)-1]
		r.open[id] = open[:len(open)-1]
		if r.nodes[s.node].results[s.call] == nil {
			return s, true
		}
	}
	return slot{}, false
}

func (r *repairer) takeUnnamed(name string) (slot, bool) {
	at := len(r.nodes) - 1
	if at < 0 || r.nodes[at].answered == len(r.nodes[at].results) {
		return slot{}, false
	}
	calls := r.nodes[at].entry.Message.ToolCalls
	for i, done := range r.nodes[at].results {
		if done == nil && (name == "" || calls[i].Name == name) {
			return slot{node: at, call: i}, true
		}
	}
	return slot{}, false
}

func (r *repairer) missing(message *Entry, call *abi.ToolCall) *Entry {
	r.note(message.Line, "call %s (%s) has no result, an error result stands in", call.ID, clip(call.Name, maxTitle))
	return &Entry{
		Message: abi.Message{Role: abi.RoleTool, Content: []abi.ContentBlock{abi.Text(missingResult)}},
		Status:  abi.ToolError, Line: message.Line, At: message.At, Synthetic: true,
	}
}

// uniquer gives out names, each once. The value is the next suffix to try.
type uniquer map[string]int

// take returns the name, or name-2 and so on when it is taken.
func (u uniquer) take(name string) string {
	if _, taken := u[name]; !taken {
		u[name] = 2
		return name
	}
	for n := u[name]; ; n++ {
		candidate := name + "-" + strconv.Itoa(n)
		if _, taken := u[candidate]; !taken {
			u[name] = n + 1
			u[candidate] = 2
			return candidate
		}
	}
}

// nameMessages gives every message an id that is unique in the conversation.
// Recorded ids win over made ones, wherever they stand.
func nameMessages(entries []Entry) {
	used := uniquer{}
	for i := range entries {
		m := &entries[i].Message
		if m.ID != "" && len(m.ID) <= maxIDLength {
			m.ID = used.take(m.ID)
		} else {
			m.ID = ""
		}
	}
	for i := range entries {
		if m := &entries[i].Message; m.ID == "" {
			m.ID = used.take(fmt.Sprintf("m%06d", i+1))
		}
	}
}
