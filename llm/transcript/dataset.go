package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// dataset reads records that hold a whole conversation each.
type dataset struct {
	r      *reader
	format Format
	drafts []draft
}

func newDataset(r *reader) *dataset { return &dataset{r: r} }

// finish gives a file of mixed records the format of the first.
func (d *dataset) finish() (Format, []draft) { return d.format, d.drafts }

func (d *dataset) record(line int, data []byte) error {
	o, ok := parseObject(data)
	if !ok || !isConversation(o) {
		return errors.New("the record holds no conversation")
	}
	lines := &lineCounter{data: data, line: line}
	var (
		got    draft
		format Format
		err    error
	)
	switch {
	case isOpenCode(o):
		got, err = d.openCode(o, lines)
		format = FormatOpenCode
	case o.is("messages", '['):
		got, format, err = d.messages(o, "messages", lines)
	case o.is("traj", '['):
		got, _, err = d.messages(o, "traj", lines)
		format = FormatTauBench
		got.id = o.text("task_id")
		if trial := o.text("trial"); trial != "" {
			got.id += "/" + trial
		}
	case isResponses(o):
		got, err = d.responses(o, lines)
		format = FormatResponses
	case o.is("conversation", '['): // an exported session of Goose
		got, format, err = d.messages(o, "conversation", lines)
	case o.is("history", '['):
		got, format, err = d.history(o, lines)
	case o.is("meeting_transcripts", '['):
		format = FormatQMSum
		got, err = d.meeting(o, lines)
	default:
		format = FormatBFCLMemory
		got, err = d.questions(o, lines)
	}
	if d.format == "" {
		d.format = format
	}
	if err != nil {
		return err
	}
	d.drafts = append(d.drafts, got)
	return nil
}

// messages reads a list of messages that stands in a field.
func (d *dataset) messages(o object, field string, lines *lineCounter) (draft, Format, error) {
	l := &messageList{r: d.r}
	if system := o["system"]; len(system.raw) > 0 && first(system.raw) != 'n' {
		c, err := parseContent(system.raw)
		if err != nil {
			return draft{}, "", fmt.Errorf("system: %w", err)
		}
		l.system, l.format = true, c.format
		e := Entry{Message: abi.Message{Role: abi.RoleSystem}, Line: lines.line}
		if err := d.r.add(&l.draft, e, c); err != nil {
			return draft{}, "", err
		}
	}
	v := o[field]
	for offset, part := range elements(v.raw) {
		if err := l.record(lines.at(v.offset+offset), part); err != nil {
			if err := d.broken(lines.line, err); err != nil {
				return l.draft, l.kind(), err
			}
		}
	}
	for _, key := range []string{"instance_id", "conversation_id", "id"} {
		if l.draft.id == "" {
			l.draft.id = o.text(key)
		}
	}
	l.draft.setTitle(o.text("title"))
	format := l.kind()
	if strings.HasPrefix(o.text("trajectory_format"), "mini-swe-agent") {
		format = FormatMiniSWEAgent
		l.draft.commands(format)
	}
	return l.draft, format, nil
}

// broken decides whether reading continues after an error in a part of a record.
// The limit of the file is no error of one line.
func (d *dataset) broken(line int, err error) error {
	if d.r.size > maxEntries {
		return err
	}
	return d.r.broken(&LineError{Line: line, Err: err})
}

// meeting reads the turns of a meeting as messages of the user, distinguished
// by name. The questions about the meeting are not part of it.
func (d *dataset) meeting(o object, lines *lineCounter) (draft, error) {
	got := draft{id: fmt.Sprint(len(d.drafts))}
	v := o["meeting_transcripts"]
	for offset, part := range elements(v.raw) {
		var turn struct{ Speaker, Content *string }
		line := lines.at(v.offset + offset)
		if err := json.Unmarshal(part, &turn); err != nil || turn.Speaker == nil || turn.Content == nil {
			if err := d.broken(line, errors.New("a turn needs speaker and content")); err != nil {
				return got, err
			}
			continue
		}
		var c content
		c.text(*turn.Speaker + ": " + *turn.Content)
		e := Entry{Message: abi.Message{Role: abi.RoleUser}, Line: line}
		if err := d.r.add(&got, e, c); err != nil {
			return got, err
		}
	}
	for _, part := range elements(o["topic_list"].raw) {
		if topic, ok := parseObject(part); ok {
			got.setTitle(topic.text("topic"))
			break
		}
	}
	return got, nil
}

// questions reads turns that are lists of messages. Message ids are the id of
// the record and the number of the turn, from 0.
func (d *dataset) questions(o object, lines *lineCounter) (draft, error) {
	l := &messageList{r: d.r, draft: draft{id: o.text("id")}}
	l.draft.setTitle(o.text("topic"))
	v, turn := o["question"], 0
	for offset, messages := range elements(v.raw) {
		if err := d.turn(l, turn, v.offset+offset, messages, lines); err != nil {
			return l.draft, err
		}
		turn++
	}
	return l.draft, nil
}

func (d *dataset) turn(l *messageList, turn, offset int, messages []byte, lines *lineCounter) error {
	if first(messages) != '[' {
		return d.broken(lines.at(offset), errors.New("a turn is not a list of messages"))
	}
	before := len(l.draft.entries)
	for inner, part := range elements(messages) {
		if err := l.record(lines.at(offset+inner), part); err != nil {
			if err := d.broken(lines.line, err); err != nil {
				return err
			}
		}
	}
	for i := before; i < len(l.draft.entries); i++ {
		if m := &l.draft.entries[i].Message; m.ID == "" {
			m.ID = fmt.Sprintf("%s#%d", l.draft.id, turn)
		}
	}
	return nil
}
