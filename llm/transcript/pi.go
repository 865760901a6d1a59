package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// piLine is one line of a pi session.
type piLine struct {
	Type      string
	ID        looseString
	ParentID  looseString
	Timestamp looseString
	Name      looseString
	Summary   looseString
	// FirstKept and TokensBefore belong to compactions.
	FirstKept    looseString `json:"firstKeptEntryId"`
	TokensBefore tokens
	Content      json.RawMessage
	Message      json.RawMessage
}

// piMessage is the union of pi's messages.
type piMessage struct {
	Role       string
	Content    json.RawMessage
	Model      looseString
	Usage      json.RawMessage
	StopReason looseString
	// ErrorMessage is the reason why an answer was aborted.
	ErrorMessage looseString
	ToolCallID   looseString
	ToolName     looseString
	IsError      looseBool
	Summary      looseString
	// The rest belongs to bashExecution.
	Command            looseString
	Output             looseString
	ExitCode           looseString
	Cancelled          looseBool
	ExcludeFromContext looseBool
}

// piSession reads pi sessions. A second session header begins a second
// conversation.
type piSession struct {
	r     *reader
	done  []draft
	draft draft
	// nodes are the lines of the current session in the order of the file.
	nodes []piNode
	ids   map[string]int
}

// piNode is one line of a session: its parent and the messages it added.
type piNode struct {
	parent   int // -1 for a root
	from, to int // entries of the draft
	cut      int // number of its compaction in the draft, 0 for none
}

func (p *piSession) finish() (Format, []draft) {
	p.flush()
	return FormatPi, p.done
}

// flush ends the current session.
func (p *piSession) flush() {
	if len(p.nodes) > 0 || p.draft.id != "" {
		p.draft.entries = p.path()
		p.done = append(p.done, p.draft)
	}
	p.draft, p.nodes, p.ids = draft{}, nil, map[string]int{}
}

// path returns the messages between a root and the last line.
func (p *piSession) path() []Entry {
	on := make([]bool, len(p.nodes))
	for i := len(p.nodes) - 1; i >= 0; i = p.nodes[i].parent {
		on[i] = true
	}
	out := p.draft.entries[:0]
	var cuts []cut
	for i, n := range p.nodes {
		if on[i] {
			out = append(out, p.draft.entries[n.from:n.to]...)
			if n.cut > 0 {
				cuts = append(cuts, p.draft.cuts[n.cut-1])
			}
			continue
		}
		for range n.to - n.from {
			p.r.skip("abandoned branch")
		}
	}
	p.draft.cuts = cuts
	return out
}

func (p *piSession) record(line int, data []byte) error {
	var l piLine
	if err := json.Unmarshal(data, &l); err != nil {
		return fmt.Errorf("pi entry: %w", err)
	}
	if l.Type == "" {
		return errors.New("an entry has no type")
	}
	if l.Type == "session" {
		p.flush()
		p.draft.id = string(l.ID)
		return nil
	}
	from := len(p.draft.entries)
	err := p.entry(line, &l)
	p.link(line, &l, from)
	return err
}

// link puts a line in the tree. Lines of older files have no ids and follow one
// another; so does a line whose parent is not in the file.
func (p *piSession) link(line int, l *piLine, from int) {
	at := len(p.nodes)
	n := piNode{parent: at - 1, from: from, to: len(p.draft.entries)}
	if l.Type == "compaction" {
		p.draft.cuts = append(p.draft.cuts, cut{
			Compaction: Compaction{Summary: string(l.Summary), TokensBefore: int64(l.TokensBefore), Line: line, Time: moment(string(l.Timestamp))},
			firstKept:  string(l.FirstKept),
		})
		n.cut = len(p.draft.cuts)
	}
	if l.ID != "" {
		parent, known := p.ids[string(l.ParentID)]
		switch {
		case l.ParentID == "":
			n.parent = -1
		case known:
			n.parent = parent
		default:
			p.draft.partial = p.draft.partial || at == 0
			p.draft.note(line, "parent %q is not in the file, the entry before stands in", clip(string(l.ParentID), maxIDLength))
		}
		if p.ids == nil {
			p.ids = map[string]int{}
		}
		p.ids[string(l.ID)] = at
	}
	p.nodes = append(p.nodes, n)
}

func (p *piSession) entry(line int, l *piLine) error {
	e := Entry{Message: abi.Message{ID: string(l.ID), Role: abi.RoleUser}, Line: line, At: moment(string(l.Timestamp))}
	switch l.Type {
	case "message":
		return p.message(e, l.Message)
	case "custom_message":
		c, err := parseContent(l.Content)
		if err != nil {
			return err
		}
		return p.r.add(&p.draft, e, c)
	case "branch_summary":
		return p.text(e, branchText(string(l.Summary)))
	case "session_info":
		p.draft.setTitle(string(l.Name))
	}
	p.r.skip(l.Type)
	return nil
}

func (p *piSession) message(e Entry, raw []byte) error {
	if first(raw) != '{' {
		return errors.New("an entry of type message has no message")
	}
	var m piMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	switch m.Role {
	case "user", "custom", "hookMessage":
	case "assistant":
		e.Message.Role = abi.RoleAssistant
		e.Model, e.Usage, e.StopReason = string(m.Model), parseUsage(m.Usage), stopReason(string(m.StopReason))
		if m.StopReason == "aborted" || m.StopReason == "error" {
			p.draft.note(e.Line, "the answer ended early: %s", clip(strings.TrimSpace(string(m.StopReason+" "+m.ErrorMessage)), maxTitle))
		}
	case "toolResult":
		e.Message.Role, e.Message.ToolCallID = abi.RoleTool, string(m.ToolCallID)
		e.ToolName, e.Status = string(m.ToolName), status(bool(m.IsError))
	case "bashExecution":
		if m.ExcludeFromContext {
			p.r.skip("bashExecution kept from the model")
			return nil
		}
		return p.text(e, m.bash())
	case "branchSummary":
		return p.text(e, branchText(string(m.Summary)))
	case "compactionSummary":
		e.Message.Role = abi.RoleSystem
		return p.text(e, "Summary of the conversation before this point:\n\n"+string(m.Summary))
	case "":
		return errors.New("a message has no role")
	default:
		p.r.skip("role " + m.Role)
		return nil
	}
	c, err := parseContent(m.Content)
	if err != nil {
		return err
	}
	return p.r.add(&p.draft, e, c)
}

func (p *piSession) text(e Entry, s string) error {
	var c content
	c.text(s)
	return p.r.add(&p.draft, e, c)
}

func branchText(summary string) string {
	return "Summary of a branch that the conversation came back from:\n\n" + summary
}

// bash renders a command that the user ran outside of the model's calls.
func (m *piMessage) bash() string {
	var b strings.Builder
	fmt.Fprintf(&b, "The user ran `%s`.\n\n%s", m.Command, m.Output)
	switch {
	case bool(m.Cancelled):
		b.WriteString("\n\nThe command was cancelled.")
	case m.ExitCode != "" && m.ExitCode != "0":
		fmt.Fprintf(&b, "\n\nExit code %s.", m.ExitCode)
	}
	return b.String()
}
