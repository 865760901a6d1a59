package transcript

import (
	"encoding/json"
	"errors"
)

// gooseBlock is a call or a result in a session of Goose.
type gooseBlock struct {
	ID         looseString
	ToolCall   loose[gooseOutcome[gooseCall]]
	ToolResult json.RawMessage
}

// gooseOutcome is a value or an error.
type gooseOutcome[T any] struct {
	Status looseString
	Value  T
	Error  looseString
}

type gooseCall struct {
	Name      looseString
	Arguments json.RawMessage
}

func (c *content) gooseRequest(raw []byte) error {
	c.is(FormatGoose)
	var b gooseBlock
	if err := json.Unmarshal(raw, &b); err != nil {
		return err
	}
	k := b.ToolCall.value
	if k == nil {
		return errors.New("a toolRequest has no toolCall")
	}
	if k.Status == "error" { // the model wrote a call that could not be read
		return c.addCall(string(b.ID), "unreadable", string(k.Error))
	}
	return c.addCall(string(b.ID), string(k.Value.Name), arguments(k.Value.Arguments))
}

func (c *content) gooseResponse(raw []byte) error {
	c.is(FormatGoose)
	var b gooseBlock
	if err := json.Unmarshal(raw, &b); err != nil {
		return err
	}
	var out gooseOutcome[json.RawMessage]
	if first(b.ToolResult) != '{' || json.Unmarshal(b.ToolResult, &out) != nil {
		return errors.New("a toolResponse has no toolResult")
	}
	if out.Status == "error" {
		return c.addResult(string(b.ID), true, rendered(quoted(string(out.Error))))
	}
	failed := false
	list := out.Value
	if o, ok := parseObject(out.Value); ok {
		failed = string(o["isError"].raw) == "true"
		list = o["content"].raw
	}
	var inner content
	if err := inner.parse(list); err != nil {
		return err
	}
	return c.addResult(string(b.ID), failed, inner)
}

// gooseLog reads sessions of Goose in JSON lines, whose first line is no message.
type gooseLog struct{ messageList }

func newGooseLog(r *reader) *gooseLog { return &gooseLog{messageList{r: r, format: FormatGoose}} }

// isGooseHead reports the first line of a session.
func isGooseHead(o object) bool {
	return o.is("working_dir", '"') && !o.is("role", '"') && !o.is("conversation", '[')
}

func (l *gooseLog) record(line int, data []byte) error {
	if o, ok := parseObject(data); ok && isGooseHead(o) {
		l.draft.setTitle(o.text("description"))
		l.r.skip("session head")
		return nil
	}
	return l.messageList.record(line, data)
}

// history reads the history of a run of SWE-agent, or the events of one of
// OpenHands.
func (d *dataset) history(o object, lines *lineCounter) (draft, Format, error) {
	v := o["history"]
	for _, part := range elements(v.raw) {
		event, ok := parseObject(part)
		if ok && isHands(event) {
			return d.events(o, lines)
		}
		break
	}
	got, _, err := d.messages(o, "history", lines)
	got.commands(FormatSWEAgent)
	return got, FormatSWEAgent, err
}

func (d *dataset) events(o object, lines *lineCounter) (draft, Format, error) {
	l := newHandsLog(d.r)
	l.draft.id = o.text("instance_id")
	v := o["history"]
	for offset, part := range elements(v.raw) {
		line := lines.at(v.offset + offset)
		if err := l.record(line, part); err != nil {
			if err := d.broken(line, err); err != nil {
				return l.draft, FormatOpenHands, err
			}
		}
	}
	return l.draft, FormatOpenHands, nil
}
