package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/ledger"
	"github.com/mortise-dev/mortise/phases"
)

// Budgets of repair, in tokens.
const (
	repairTokens = 650
	focusTokens  = 400
	// firstShare is what may be given back before the summary is known.
	firstShare = 0.3
)

const (
	// enough of the best names in a summary need no repair.
	enough     = 0.9
	considered = 120
	// nameBytes is how many bytes of the best names are kept over a compaction.
	nameBytes = 16 << 10
	maxForgot = 4096
)

// Orders of events after a compaction, in [Dialect.Compaction].
const (
	sessionThenPost = "session_then_post"
	postThenSession = "post_then_session"
)

// Repair is what is kept of the repair of a lane.
type Repair struct {
	ID string `json:"id"`
	// Names are those of before the compaction that may be given back, the best first. Summary is what the agent made of it.
	Names   []string `json:"names"`
	Summary string   `json:"summary"`
	// Forgotten are hashes of what plugins took out of results.
	Forgotten []string `json:"forgotten"`
	// Note waits for the next event that takes context. Spent counts tokens since the last compaction began.
	Note  string `json:"note"`
	Spent int    `json:"spent"`
}

// begin is the start of a compaction.
func (r *Repair) begin(id string) { *r = Repair{ID: id, Forgotten: r.Forgotten} }

// repairs reports whether anything is to be given back.
func (h *handling) repairs() bool { return h.program.RepairTokens >= 0 }

// remember ranks the names of the conversation: by the agent's own log, or else by the events. Of a log it also takes the
// summary of the last compaction, for agents that do not send it.
func (h *handling) remember() {
	if !h.repairs() {
		return
	}
	r, log := &h.lane.saved.Repair, h.lane.log
	if c := h.transcript(); c != nil {
		log = ledger.New()
		log.Add(c.Messages()...)
		if n := len(c.Compactions); n > 0 && h.event.Dialect.Compaction == postThenSession {
			r.Summary = c.Compactions[n-1].Summary
		}
	}
	if log == nil {
		return
	}
	s := log.State()
	r.Names = slices.DeleteFunc(strings.Fields(ledger.Index(&s, nameBytes)), r.forgot())
	h.lane.dirty = true
}

// logged adds to the log of an agent that keeps none itself, or of a sub-agent, which has no log of its own.
func (h *handling) logged(messages ...abi.Message) {
	if !h.repairs() || h.readable() {
		return
	}
	if h.lane.log == nil {
		h.lane.log = ledger.New()
	}
	h.lane.log.Add(messages...)
}

// namesIn are the names of a text.
func namesIn(text string) []string {
	l := ledger.New()
	l.Before(text)
	s := l.State()
	return strings.Fields(ledger.Index(&s, len(text)+len(s.Names)))
}

// marks are hashes by which a name is found again: of itself, and of the parts of it that could be a secret.
func marks(name string) []string {
	out := []string{hashOf(name)}
	for _, part := range strings.FieldsFunc(name, func(c rune) bool { return strings.ContainsRune("/.:?=&%~@+,;#", c) }) {
		if len(part) >= 8 && len(part) < len(name) && strings.ContainsAny(part, "0123456789") {
			out = append(out, hashOf(part))
		}
	}
	return out
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// forget keeps what plugins took out of a result from ever being given back.
func (l *lane) forget(r *result) {
	forgotten := &l.saved.Repair.Forgotten
	known := map[string]bool{}
	for _, h := range *forgotten {
		known[h] = true
	}
	for _, t := range r.texts {
		if t.was == t.now {
			continue
		}
		kept := map[string]bool{}
		for _, n := range namesIn(t.now) {
			for _, h := range marks(n) {
				kept[h] = true
			}
		}
		for _, n := range namesIn(t.was) {
			for _, h := range marks(n) {
				if !kept[h] && !known[h] && len(*forgotten) < maxForgot {
					known[h], l.dirty = true, true
					*forgotten = append(*forgotten, h)
				}
			}
		}
	}
}

// forgot reports names that must not be given. When more was taken out than can be kept, that is all of them.
func (r *Repair) forgot() func(name string) bool {
	known := map[string]bool{}
	for _, h := range r.Forgotten {
		known[h] = true
	}
	return func(name string) bool {
		return len(known) >= maxForgot || slices.ContainsFunc(marks(name), func(h string) bool { return known[h] })
	}
}

// holds reports whether a text has a name that is not the beginning or the end of a longer word.
func holds(text, name string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(name)
		if (i == 0 || !wordByte(text[i-1])) && (end == len(text) || !wordByte(text[end])) {
			return true
		}
		from = end
	}
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// lost are the names that a summary does not hold, none if it holds almost all of the best.
func (r *Repair) lost(summary string) []string {
	missing := func(n string) bool { return !holds(summary, n) }
	best, gone := r.Names[:min(len(r.Names), considered)], 0
	for _, n := range best {
		if missing(n) {
			gone++
		}
	}
	if float64(len(best)-gone) >= enough*float64(len(best)) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.Names), func(n string) bool { return !missing(n) })
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
	names := h.asked()
	if len(names) == 0 {
		return ""
	}
	return h.filtered(focusHead + strings.Join(names, " "))
}

// asked are the names that the summarizer is asked for.
func (h *handling) asked() []string {
	if !h.repairs() {
		return nil
	}
	return choose(h.lane.saved.Repair.Names, func(names []string) bool {
		return tokensOf(focusHead+strings.Join(names, " ")) <= focusTokens
	})
}

// atSessionStart is the first chance after a compaction. Where the summary is known the note is complete; else it has
// the best of the names that the summarizer was not asked for.
func (h *handling) atSessionStart() {
	r := &h.lane.saved.Repair
	if len(r.Names) == 0 {
		h.remember()
	}
	h.lane.watch(r.Names)
	switch h.event.Dialect.Compaction {
	case postThenSession:
		h.lane.summarized(r.Summary)
		h.give(r.lost(r.Summary), h.budget(1))
		r.Names, r.Summary = nil, ""
	case sessionThenPost:
		names := r.Names
		if h.event.Dialect.focuses() {
			asked := strings.Join(h.asked(), " ")
			names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return holds(asked, n) })
		}
		h.give(names, h.budget(firstShare))
	}
	h.giveBack()
}

// focuses reports whether the agent's summarizer can be asked for names.
func (d *Dialect) focuses() bool {
	for _, e := range d.Events {
		if e.Has(FormFocus) {
			return true
		}
	}
	return false
}

// afterSummary notes what a summary lost, for the next event that takes context.
func (h *handling) afterSummary(summary string) {
	r := &h.lane.saved.Repair
	if summary == "" || h.event.Dialect.Compaction == postThenSession { // there the session start follows
		return
	}
	if h.lane.watched == nil {
		h.lane.watch(r.Names)
	}
	h.lane.summarized(summary)
	h.give(r.lost(summary), h.budget(1))
	r.Names, h.lane.dirty = nil, true
}

// give writes a note of the best names that fit a budget of tokens.
func (h *handling) give(names []string, tokens int) {
	if !h.repairs() {
		return
	}
	chosen := choose(names, func(names []string) bool { return tokensOf(noteOf(names)) <= tokens })
	if len(chosen) == 0 {
		return
	}
	note := h.filtered(noteOf(chosen))
	if note == "" {
		return
	}
	r := &h.lane.saved.Repair
	h.lane.noted(chosen)
	r.Names = slices.DeleteFunc(r.Names, func(n string) bool { return holds(note, n) })
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

// Parts of a note, which has facts and no orders, and the words that ask a summarizer.
const (
	noteHead  = "Kept by mortise from before the compaction, verbatim.\n"
	noteTail  = "Check before relying on them."
	focusHead = "Keep these names exactly: "
)

// noteOf writes names by their form, with blanks between them: none holds one.
func noteOf(names []string) string {
	kinds := [...]string{"Files", "Identifiers", "Values"}
	var lines [len(kinds)]string
	for _, n := range names {
		lines[formOf(n)] += " " + n
	}
	var b strings.Builder
	b.WriteString(noteHead)
	for i, l := range lines {
		if l != "" {
			b.WriteString(kinds[i] + ":" + l + "\n")
		}
	}
	return b.String() + noteTail
}

// formOf groups names: files, identifiers, and addresses, hashes and numbers.
func formOf(n string) int {
	dot := strings.LastIndexByte(n, '.')
	switch {
	case strings.Contains(n, "://"), strings.Trim(n, "0123456789abcdef.:,_-") == "" && strings.ContainsAny(n, "0123456789"):
		return 2
	case strings.Contains(n, "/"), dot > 0 && len(n)-dot <= 5 && n[dot+1:] == strings.ToLower(n[dot+1:]):
		return 0
	}
	return 1
}

// choose takes the best names as long as they fit. One that is part of another is in it already.
func choose(names []string, fits func([]string) bool) []string {
	var out []string
	misses := 0
	for _, n := range names {
		if slices.ContainsFunc(out, func(o string) bool { return holds(o, n) }) {
			continue
		}
		next := append(slices.DeleteFunc(slices.Clone(out), func(o string) bool { return holds(n, o) }), n)
		if fits(next) {
			out, misses = next, 0
			continue
		}
		misses++
		if misses > maxMisses {
			break // it is full
		}
	}
	return out
}

// maxMisses is after how many names in a row that do not fit no shorter one is tried.
const maxMisses = 20

func tokensOf(s string) int {
	return int(compaction.EstimateMessage(&abi.Message{Content: []abi.ContentBlock{abi.Text(s)}}))
}
