package transcript

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

// handsEvent is the union of the events of OpenHands. Up to version 0.x an event
// has an action or an observation, from 1.0 it has a kind.
type handsEvent struct {
	ID          looseString
	Timestamp   looseString
	Source      looseString
	Message     looseString
	Action      json.RawMessage
	Observation json.RawMessage
	Content     json.RawMessage
	Cause       looseString
	Args        handsArgs
	RawArgs     json.RawMessage `json:"-"`
	Extras      struct {
		ExitCode looseString `json:"exit_code"`
		Metadata struct {
			ExitCode looseString `json:"exit_code"`
		}
	}
	Call loose[handsCall] `json:"tool_call_metadata"`
	handsV1
}

type handsArgs struct {
	Content      looseString
	Thought      looseString
	FinalThought looseString `json:"final_thought"`
	Summary      looseString
}

// handsCall is the call of the model that an event comes from.
type handsCall struct {
	Name     looseString `json:"function_name"`
	ID       looseString `json:"tool_call_id"`
	Response struct {
		ID      looseString
		Model   looseString
		Choices []struct{ Message listMessage }
	} `json:"model_response"`
}

// handsLog reads the events of OpenHands.
type handsLog struct {
	r     *reader
	draft draft
	items itemReader
	// response is the answer of the model that the open message holds.
	response string
	// calls are the ids of calls by those of their events.
	calls map[string]string
}

func newHandsLog(r *reader) *handsLog {
	return &handsLog{r: r, items: itemReader{r: r, open: -1}, calls: map[string]string{}}
}

func (l *handsLog) finish() (Format, []draft) { return FormatOpenHands, []draft{l.draft} }

// isHands reports an event of OpenHands.
func isHands(o object) bool {
	if !o.is("source", '"') || o.is("type", '"') {
		return false
	}
	return o.is("kind", '"') && o.is("id", '"') || o.is("action", '"') || o.is("observation", '"')
}

func (l *handsLog) record(line int, data []byte) error {
	var v handsEvent
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf("event: %w", err)
	}
	o, _ := parseObject(data)
	v.RawArgs = o["args"].raw
	l.r.firstMessage(data)
	e := Entry{Line: line, At: moment(string(v.Timestamp))}
	switch {
	case v.Kind != "":
		return l.kind(e, &v)
	case o.is("action", '"'):
		return l.action(e, &v, o.text("action"))
	case o.is("observation", '"'):
		return l.observation(e, &v, o.text("observation"))
	}
	return errors.New("an event is neither an action nor an observation")
}

func (l *handsLog) say(e Entry, role abi.Role, text string) error {
	var c content
	c.text(text)
	e.Message.Role = role
	l.items.open = -1
	return l.r.add(&l.draft, e, c)
}

func (l *handsLog) action(e Entry, v *handsEvent, action string) error {
	switch action {
	case "null", "change_agent_state", "recall", "pause", "resume", "stop":
		l.r.skip("action " + action)
		return nil
	case "system":
		return l.say(e, abi.RoleSystem, string(v.Args.Content))
	case "condensation":
		l.draft.cuts = append(l.draft.cuts, cut{Compaction: Compaction{Summary: string(v.Args.Summary), Line: e.Line, Time: e.At}})
		l.r.skip("action " + action)
		return nil
	case "message", "finish", "reject":
		role := abi.RoleUser
		if v.Source == "agent" {
			role = abi.RoleAssistant
		}
		return l.say(e, role, string(cmp.Or(v.Args.Content, v.Args.FinalThought, v.Args.Thought, v.Message)))
	}
	if v.Source == "user" {
		e.Message.Visibility = abi.VisibilityInternal
		return l.say(e, abi.RoleUser, string(v.Message))
	}
	call := handsCall{Name: looseString(action), ID: "event_" + v.ID}
	args := arguments(v.RawArgs)
	text := string(v.Args.Thought)
	if m := v.Call.value; m != nil && m.ID != "" {
		call = *m
		args, text = m.arguments(args, text)
	}
	l.calls[string(v.ID)] = string(call.ID)
	return l.call(e, &call, args, text)
}

// arguments are those that the model wrote, where they were recorded.
func (m *handsCall) arguments(args any, text string) (any, string) {
	for i := range m.Response.Choices {
		message := &m.Response.Choices[i].Message
		if c, err := parseContent(message.Content); err == nil {
			text = cmp.Or(c.string(), text)
		}
		for _, k := range message.ToolCalls {
			if k.ID == m.ID && k.Function != nil {
				return arguments(k.Function.Arguments), text
			}
		}
	}
	return args, text
}

// call adds a call to the open answer, when it is of the same answer of the model.
func (l *handsLog) call(e Entry, k *handsCall, args any, text string) error {
	var c content
	response := string(k.Response.ID)
	same := response != "" && response == l.response && l.items.open >= 0
	if !same {
		l.items.open = -1
		c.text(text)
	}
	l.response = response
	e.Message.Role, e.Model = abi.RoleAssistant, string(k.Response.Model)
	if err := c.addCall(string(k.ID), string(k.Name), args); err != nil {
		return err
	}
	return l.items.message(&l.draft, e, c)
}

func (l *handsLog) observation(e Entry, v *handsEvent, kind string) error {
	id := l.calls[string(v.Cause)]
	if m := v.Call.value; m != nil && m.ID != "" {
		id = string(m.ID)
	}
	if id == "" {
		l.r.skip("observation " + kind)
		return nil
	}
	code := cmp.Or(v.Extras.ExitCode, v.Extras.Metadata.ExitCode)
	return l.result(e, id, kind == "error" || code != "" && code != "0", rendered(v.Content))
}

// result adds a result; the answer stays open for the calls that follow in the
// log, as OpenHands executes them one by one.
func (l *handsLog) result(e Entry, id string, failed bool, c content) error {
	e.Message.Role, e.Message.ToolCallID, e.Status = abi.RoleTool, id, status(failed)
	return l.r.add(&l.draft, e, c)
}
