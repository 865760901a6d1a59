package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// codexLine is one line of a rollout of Codex. Older rollouts have the items
// themselves on their lines.
type codexLine struct {
	Timestamp  looseString
	Type       string
	Payload    json.RawMessage
	ID         looseString
	RecordType looseString `json:"record_type"`
}

// codexPayload is the union of the payloads that are no items.
type codexPayload struct {
	Type looseString
	ID   looseString
	// Message and History belong to a compaction.
	Message looseString
	History json.RawMessage `json:"replacement_history"`
	Model   looseString
	Info    loose[struct {
		Last loose[codexUsage] `json:"last_token_usage"`
	}]
}

type codexUsage struct {
	Input     tokens `json:"input_tokens"`
	Cached    tokens `json:"cached_input_tokens"`
	Output    tokens `json:"output_tokens"`
	Reasoning tokens `json:"reasoning_output_tokens"`
	Total     tokens `json:"total_tokens"`
}

// codexLog reads rollouts of Codex.
type codexLog struct {
	r     *reader
	items itemReader
	draft draft
	model string
}

func newCodexLog(r *reader) *codexLog { return &codexLog{r: r, items: itemReader{r: r, open: -1}} }

func (l *codexLog) finish() (Format, []draft) { return FormatCodex, []draft{l.draft} }

// isCodex reports a line of a rollout.
func isCodex(kind string, o object) bool {
	switch kind {
	case "session_meta", "response_item", "event_msg", "turn_context", "compacted":
		return o.is("payload", '{')
	case "":
		_, instructions := o["instructions"]
		return instructions && o.is("id", '"') && o.is("timestamp", '"')
	}
	return false
}

func (l *codexLog) record(line int, data []byte) error {
	var c codexLine
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("rollout line: %w", err)
	}
	e := Entry{Line: line, At: moment(string(c.Timestamp))}
	if c.Payload == nil {
		if c.Type == "" { // the head of an older rollout, or its state
			l.draft.id = cmp.Or(l.draft.id, string(c.ID))
			l.r.skip(cmp.Or(string(c.RecordType), "session head"))
			return nil
		}
		return l.item(e, data)
	}
	if c.Type == "response_item" {
		return l.item(e, c.Payload)
	}
	var p codexPayload
	if err := json.Unmarshal(c.Payload, &p); err != nil {
		return fmt.Errorf("rollout line: %w", err)
	}
	switch c.Type {
	case "session_meta":
		l.draft.id = cmp.Or(l.draft.id, string(p.ID))
	case "turn_context":
		l.model = string(p.Model)
	case "compacted":
		l.compacted(e, &p)
	case "event_msg":
		l.event(&p)
		l.r.skip("event " + string(p.Type))
		return nil
	}
	l.r.skip(c.Type)
	return nil
}

func (l *codexLog) item(e Entry, data []byte) error {
	var m listMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("item: %w", err)
	}
	if m.Type != "message" {
		if m.Type == "" {
			return errors.New("an item has no type")
		}
		e.Model = l.model
		return l.items.item(&l.draft, e, data)
	}
	role, err := listRole(m.Role)
	if err != nil {
		return err
	}
	c, err := m.content()
	if err != nil {
		return err
	}
	e.Message = abi.Message{ID: string(m.ID), Role: role}
	text := c.string()
	switch {
	case role == abi.RoleAssistant:
		e.Model = l.model
	case role == abi.RoleUser && strings.HasPrefix(text, codexSummary):
		l.r.skip("compact summary")
		return nil
	case role == abi.RoleUser && writtenByCodex(text):
		e.Message.Visibility = abi.VisibilityInternal
	}
	return l.items.message(&l.draft, e, c)
}

// codexSummary is how Codex begins the summary of a compaction, which it hands to
// the model as a message of the user.
const codexSummary = "Another language model started to solve this problem and produced a summary"

// writtenByCodex reports text that Codex writes in the user's place.
func writtenByCodex(s string) bool {
	s = strings.TrimSpace(s)
	for _, start := range []string{
		"<environment_context>", "<user_instructions>", "# AGENTS.md instructions for ", "<turn_aborted>", "<user_shell_command>", "<skill>",
		"<INSTRUCTIONS>", "<subagent_notification>", "<personality_spec>",
	} {
		if strings.HasPrefix(s, start) {
			return true
		}
	}
	return false
}

// compacted keeps a compaction. Its summary is the message, or the one among the
// messages that replace the history; one of a remote compaction is encrypted.
func (l *codexLog) compacted(e Entry, p *codexPayload) {
	l.items.open = -1
	k := cut{Compaction: Compaction{Summary: string(p.Message), Line: e.Line, Time: e.At}}
	for _, part := range elements(p.History) {
		var m listMessage
		if k.Summary != "" || json.Unmarshal(part, &m) != nil || m.Type != "message" {
			continue
		}
		if c, err := m.content(); err == nil && strings.HasPrefix(c.string(), codexSummary) {
			k.Summary = c.string()
		}
	}
	for i := len(l.draft.entries) - 1; i >= 0 && k.TokensBefore == 0; i-- {
		if u := l.draft.entries[i].Usage; u != nil {
			k.TokensBefore = u.TotalTokens
		}
	}
	l.draft.cuts = append(l.draft.cuts, k)
}

// event keeps the usage of the last answer, which is reported behind it.
func (l *codexLog) event(p *codexPayload) {
	if p.Type != "token_count" || p.Info.value == nil || p.Info.value.Last.value == nil {
		return
	}
	u := p.Info.value.Last.value
	at := l.draft.lastAnswer()
	if at < 0 || *u == (codexUsage{}) || l.draft.entries[at].Usage != nil {
		return
	}
	l.draft.entries[at].Usage = &abi.Usage{
		PromptTokens: int64(u.Input), CompletionTokens: int64(u.Output), TotalTokens: int64(cmp.Or(u.Total, u.Input+u.Output)),
		CacheReadTokens: int64(u.Cached), ThinkingTokens: int64(u.Reasoning),
	}
}
