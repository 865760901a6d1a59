package transcript

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

// claudeLine is one line of a Claude Code session.
type claudeLine struct {
	Type              string
	UUID              string
	SessionID         looseString
	Session           looseString `json:"session_id"`
	Timestamp         looseString
	IsSidechain       looseBool
	IsMeta            looseBool
	IsAPIErrorMessage looseBool `json:"isApiErrorMessage"`
	Summary           looseString
	CustomTitle       looseString
	Message           json.RawMessage
}

type claudeMessage struct {
	ID         looseString
	Role       string
	Model      looseString
	Content    json.RawMessage
	StopReason looseString `json:"stop_reason"`
	Usage      json.RawMessage
}

// claudeLog reads Claude Code sessions.
type claudeLog struct {
	r *reader
	// main is the conversation. side holds what subagents said, which is read
	// only when the file holds nothing else.
	main, side claudeThread
	// sidechain counts entries of side.
	sidechain int
	seen      map[string]bool
}

// claudeThread is a draft whose last answer may still grow: one answer of the
// API is spread over several lines, with results in between.
type claudeThread struct {
	draft draft
	// last is the index of the last answer and lastID its id at the API; -1 when
	// something other than a result came after it.
	last   int
	lastID string
}

func newClaudeLog(r *reader) *claudeLog {
	return &claudeLog{r: r, main: claudeThread{last: -1}, side: claudeThread{last: -1}, seen: map[string]bool{}}
}

func (l *claudeLog) finish() (Format, []draft) {
	if len(l.main.draft.entries) == 0 && len(l.side.draft.entries) > 0 {
		l.side.draft.id, l.side.draft.title = l.main.draft.id, l.main.draft.title
		return FormatClaudeCode, []draft{l.side.draft}
	}
	for range l.sidechain {
		l.r.skip("sidechain")
	}
	return FormatClaudeCode, []draft{l.main.draft}
}

func (l *claudeLog) record(line int, data []byte) error {
	var c claudeLine
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("entry: %w", err)
	}
	if l.main.draft.id == "" {
		l.main.draft.id = string(c.SessionID + c.Session)
	}
	switch c.Type {
	case "":
		return errors.New("an entry has no type")
	case "user", "assistant":
	default:
		l.main.draft.setTitle(string(c.Summary + c.CustomTitle))
		l.r.skip(c.Type)
		return nil
	}
	// A resumed session repeats its history.
	if c.UUID != "" && l.seen[c.UUID] {
		l.r.skip("repeated entry")
		return nil
	}
	if c.UUID != "" {
		l.seen[c.UUID] = true
	}
	if c.IsAPIErrorMessage {
		l.r.skip("api error")
		return nil
	}
	return l.message(line, &c)
}

func (l *claudeLog) message(line int, c *claudeLine) error {
	if first(c.Message) != '{' {
		return fmt.Errorf("an entry of type %s has no message", c.Type)
	}
	var m claudeMessage
	if err := json.Unmarshal(c.Message, &m); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	body, err := parseContent(m.Content)
	if err != nil {
		return err
	}
	e := Entry{
		Message: abi.Message{ID: c.UUID, Role: abi.RoleUser},
		Line:    line, At: moment(string(c.Timestamp)),
	}
	if c.IsMeta {
		e.Message.Visibility = abi.VisibilityInternal
	}
	thread := &l.main
	if c.IsSidechain {
		l.sidechain++
		thread = &l.side
	}
	if c.Type == "user" {
		return thread.user(l.r, e, body)
	}
	e.Message.Role = abi.RoleAssistant
	e.Model, e.Usage, e.StopReason = string(m.Model), parseUsage(m.Usage), stopReason(string(m.StopReason))
	return thread.assistant(l.r, e, body, string(m.ID))
}

func (t *claudeThread) user(r *reader, e Entry, body content) error {
	if len(body.results) == 0 || len(body.blocks) > 0 {
		t.last, t.lastID = -1, ""
	}
	return r.add(&t.draft, e, body)
}

func (t *claudeThread) assistant(r *reader, e Entry, body content, id string) error {
	if t.last < 0 || id == "" || id != t.lastID {
		t.last, t.lastID = len(t.draft.entries), id
		return r.add(&t.draft, e, body)
	}
	into := &t.draft.entries[t.last]
	if len(into.Message.ToolCalls)+len(body.calls) > maxCalls {
		return fmt.Errorf("%w: more than %d tool calls in one message", ErrTooLarge, maxCalls)
	}
	for _, kind := range body.unknown {
		r.skip("content block " + kind)
	}
	r.size += len(body.calls)
	into.Message.Content = append(into.Message.Content, body.blocks...)
	into.Message.ToolCalls = append(into.Message.ToolCalls, body.calls...)
	into.Usage = mergeUsage(into.Usage, e.Usage)
	if e.StopReason != "" {
		into.StopReason = e.StopReason
	}
	return nil
}
