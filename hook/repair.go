package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// FactKind groups facts in a note.
type FactKind string

// Kinds of facts.
const (
	FactFile       FactKind = "Files"
	FactCommand    FactKind = "Commands"
	FactIdentifier FactKind = "Identifiers"
	FactValue      FactKind = "Values"
)

// Fact is something that a conversation may need again, verbatim.
type Fact struct {
	Kind FactKind
	Text string
}

// Repairer keeps the facts of one conversation. It is used by one goroutine at a time.
type Repairer interface {
	// Add adds text of the conversation, in its order. Own is what the agent or its user wrote themselves.
	Add(text string, own bool)
	// Facts returns the facts, those most likely to be needed first.
	Facts() []Fact
	// Lost returns those of the facts that a summary does not hold.
	Lost(summary string, facts []Fact) []Fact
}

// Budgets of repair. A token is counted as that many bytes of names.
const (
	repairTokens  = 650
	focusTokens   = 400
	bytesPerToken = 3.7
	// enough of the best facts in a summary need no repair.
	enough     = 0.9
	considered = 120
	maxForgot  = 4096
)

// Repair is what is kept of the repair of a lane. Given and Forgotten hold hashes.
type Repair struct {
	ID        string   `json:"id"`
	Summary   string   `json:"summary"`
	Window    string   `json:"window"`
	Given     []string `json:"given"`
	Forgotten []string `json:"forgotten"`
	// Note waits for the next event that takes context. Spent counts tokens since the last compaction began.
	Note  string `json:"note"`
	Spent int    `json:"spent"`
}

// begin is the start of a compaction.
func (r *Repair) begin(id string) {
	r.ID, r.Given, r.Note, r.Spent, r.Summary = id, nil, "", 0, ""
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// forget keeps what plugins took out of a result from ever being given back.
func (l *lane) forget(r *result) {
	for _, t := range r.texts {
		if t.was == t.now {
			continue
		}
		kept := map[string]bool{}
		for _, f := range factsIn(t.now) {
			kept[f.Text] = true
		}
		for _, f := range factsIn(t.was) {
			if h := hashOf(f.Text); !kept[f.Text] && !slices.Contains(l.saved.Repair.Forgotten, h) && len(l.saved.Repair.Forgotten) < maxForgot {
				l.saved.Repair.Forgotten = append(l.saved.Repair.Forgotten, h)
				l.dirty = true
			}
		}
	}
}

// facts are the best facts that may be given.
func (l *lane) facts() []Fact {
	out := slices.DeleteFunc(slices.Clone(l.repairer.Facts()), func(f Fact) bool { return slices.Contains(l.saved.Repair.Forgotten, hashOf(f.Text)) })
	return out[:min(len(out), considered)]
}

// lost are the best facts that a summary does not hold and that were not given yet.
func (l *lane) lost(summary string) []Fact {
	facts := l.facts()
	lost := l.repairer.Lost(summary, facts)
	if len(facts) == 0 || float64(len(facts)-len(lost)) >= enough*float64(len(facts)) {
		return nil
	}
	return slices.DeleteFunc(lost, func(f Fact) bool { return slices.Contains(l.saved.Repair.Given, hashOf(f.Text)) })
}

// budget is how many tokens repair may still spend, of a share of the whole.
func (h *handling) budget(share float64) int {
	whole := h.program.RepairTokens
	if whole == 0 {
		whole = repairTokens
	}
	return int(float64(whole)*share) - h.lane.saved.Repair.Spent
}

// focus asks the summarizer for the best names.
func (h *handling) focus() string {
	if h.program.RepairTokens < 0 {
		return ""
	}
	names := choose(h.lane.facts(), focusTokens-16)
	if len(names) == 0 {
		return ""
	}
	texts := make([]string, len(names))
	for i, f := range names {
		texts[i] = f.Text
	}
	return h.filtered("Keep these names exactly: " + strings.Join(texts, ", "))
}

// atSessionStart is the first chance after a compaction. Where the summary is known the note is complete; else it has
// the best facts, for half of the budget.
func (h *handling) atSessionStart() {
	h.readTranscript()
	r := &h.lane.saved.Repair
	switch {
	case h.event.Dialect.Compaction == "post_then_session" && r.Summary != "":
		h.give(h.lane.lost(r.Summary), h.budget(1))
	case h.event.Dialect.Compaction == "session_then_post":
		h.give(h.lane.facts(), h.budget(0.5))
	}
	h.giveBack()
}

// afterSummary notes what a summary lost, for the next event that takes context.
func (h *handling) afterSummary(summary string) {
	if summary == "" {
		return
	}
	h.lane.saved.Repair.Summary = summary
	h.lane.dirty = true
	if h.event.Dialect.Compaction != "post_then_session" { // there the session start follows
		h.give(h.lane.lost(summary), h.budget(1))
	}
}

// give writes a note of facts that fits a budget of tokens.
func (h *handling) give(facts []Fact, tokens int) {
	r := &h.lane.saved.Repair
	if h.program.RepairTokens < 0 || tokens <= 0 {
		return
	}
	chosen := choose(facts, tokens-tokensOf(noteHead+noteTail))
	if len(chosen) == 0 {
		return
	}
	note := h.filtered(noteOf(chosen))
	if note == "" {
		return
	}
	for _, f := range chosen {
		r.Given = append(r.Given, hashOf(f.Text))
	}
	r.Spent += tokensOf(note)
	r.Note = strings.TrimSpace(r.Note + "\n" + note)
	h.lane.dirty = true
}

// giveBack adds a note that waits to the answer, if the event has a form for it.
func (h *handling) giveBack() {
	r := &h.lane.saved.Repair
	if r.Note == "" || !h.event.Spec.Has(FormContext) {
		return
	}
	h.say(r.Note)
	h.record.Returned = tokensOf(r.Note)
	r.Note = ""
	h.lane.dirty = true
}

// filtered lets the plugins that look at results see a note, since it holds what results held.
func (h *handling) filtered(note string) string {
	if len(h.program.Runtime.Order(abi.AfterToolExecute)) == 0 {
		return note
	}
	call := abi.ToolCall{ID: "note_" + h.lane.saved.Repair.ID, Name: "mortise_note", Kind: abi.ToolOther, Arguments: map[string]any{}}
	f := phases.Frame{
		Phase: abi.AfterToolExecute, Run: h.lane.run, Step: h.lane.saved.Step, Call: &call, ResultMessageID: "result_" + call.ID,
		Result: &abi.ToolResult{CallID: call.ID, ToolName: call.Name, Status: abi.ToolSuccess, Content: []abi.ContentBlock{abi.Text(note)}},
	}
	out, err := h.program.Runtime.Fire(h.ctx, h.lane.st, f)
	switch {
	case err != nil:
		return ""
	case out.Result != nil:
		m := abi.Message{Content: phases.ResultContent(out.Result)}
		return m.Text()
	}
	return note
}

// Parts of a note. It has facts and no orders.
const (
	noteHead = "Kept by mortise from before the compaction, verbatim."
	noteTail = " Check before relying on them."
)

func noteOf(facts []Fact) string {
	var b strings.Builder
	b.WriteString(noteHead)
	for _, kind := range []FactKind{FactFile, FactCommand, FactIdentifier, FactValue} {
		var texts []string
		for _, f := range facts {
			if f.Kind == kind {
				texts = append(texts, f.Text)
			}
		}
		if len(texts) > 0 {
			b.WriteString(" " + string(kind) + ": " + strings.Join(texts, ", ") + ".")
		}
	}
	b.WriteString(noteTail)
	return b.String()
}

// choose takes facts in their order as long as they fit.
func choose(facts []Fact, tokens int) []Fact {
	left := int(float64(tokens)*bytesPerToken) - 4*16
	var out []Fact
	for _, f := range facts {
		if n := len(f.Text) + 2; n <= left {
			left -= n
			out = append(out, f)
		}
	}
	return out
}

func tokensOf(s string) int { return int(float64(len(s))/bytesPerToken) + 1 }
