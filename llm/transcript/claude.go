package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// claudeLine is one line of a Claude Code session.
type claudeLine struct {
	Type              string
	Subtype           looseString
	UUID              string
	ParentUUID        looseString
	CompactMetadata   loose[struct{ PreTokens tokens }]
	SessionID         looseString
	Session           looseString `json:"session_id"`
	Timestamp         looseString
	IsSidechain       looseBool
	IsMeta            looseBool
	IsCompactSummary  looseBool
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
	// under is the number of the last compaction that an entry continues from,
	// by the entry's id.
	under map[string]int
	// begun reports that the first linked entry was read.
	begun bool
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
	return &claudeLog{r: r, main: claudeThread{last: -1}, side: claudeThread{last: -1}, seen: map[string]bool{}, under: map[string]int{}}
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
	l.link(line, &c)
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
	switch {
	case bool(c.IsCompactSummary):
		l.summarized(c, body.string())
		return thread.summary(l.r, e, body)
	case c.Type == "user":
		return thread.user(l.r, e, body)
	}
	e.Message.Role = abi.RoleAssistant
	e.Model, e.Usage, e.StopReason = string(m.Model), parseUsage(m.Usage), stopReason(string(m.StopReason))
	return thread.assistant(l.r, e, body, string(m.ID))
}

// summary reads the summary of a compaction. The messages that it replaced are
// still in the file, unless nothing comes before it.
func (t *claudeThread) summary(r *reader, e Entry, body content) error {
	if len(t.draft.entries) > 0 {
		r.skip("compact summary")
		return nil
	}
	e.Message.Role = abi.RoleSystem
	return r.add(&t.draft, e, body)
}

// user reads what the user wrote, and in a message of its own what Claude Code
// wrote in the user's place.
func (t *claudeThread) user(r *reader, e Entry, body content) error {
	if len(body.results) == 0 || len(body.blocks) > 0 {
		t.last, t.lastID = -1, ""
	}
	own := body
	own.blocks = nil
	var written content
	for _, b := range body.blocks {
		if b.Type == abi.BlockText && writtenByClaudeCode(b.Text) {
			written.blocks = append(written.blocks, b)
		} else {
			own.blocks = append(own.blocks, b)
		}
	}
	if len(written.blocks) == 0 {
		return r.add(&t.draft, e, body)
	}
	if len(own.blocks) > 0 || len(own.results) > 0 {
		if err := r.add(&t.draft, e, own); err != nil {
			return err
		}
	}
	e.Message.Visibility = abi.VisibilityInternal
	return r.add(&t.draft, e, written)
}

// writtenByClaudeCode reports text that stands in an entry of the user, who did
// not write it.
func writtenByClaudeCode(s string) bool {
	s = strings.TrimSpace(s)
	switch s {
	case "[Request interrupted by user]", "[Request interrupted by user for tool use]":
		return true
	}
	return strings.HasPrefix(s, "<task-notification>") ||
		strings.HasPrefix(s, "<system-reminder>") && strings.HasSuffix(s, "</system-reminder>")
}

func (t *claudeThread) assistant(r *reader, e Entry, body content, id string) error {
	if t.last < 0 || id == "" || id != t.lastID {
		err := r.add(&t.draft, e, body)
		t.last, t.lastID = t.draft.lastAnswer(), id
		return err
	}
	body = body.flat()
	into := &t.draft.entries[t.last]
	if len(into.Message.ToolCalls)+len(body.calls) > maxCalls {
		return fmt.Errorf("%w: more than %d tool calls in one message", ErrTooLarge, maxCalls)
	}
	for _, kind := range body.unknown {
		r.skip("content block " + kind)
	}
	r.size += len(body.calls) + len(body.results)
	into.Message.Content = append(into.Message.Content, body.blocks...)
	into.Message.ToolCalls = append(into.Message.ToolCalls, body.calls...)
	into.Usage = mergeUsage(into.Usage, e.Usage)
	if e.StopReason != "" {
		into.StopReason = e.StopReason
	}
	t.draft.results(e, body.results)
	return nil
}
