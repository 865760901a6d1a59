package phases

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// rewrite gives the call other arguments. They fit the schema of the tool.
func (d *draft) rewrite(e *abi.Effect) {
	call := *d.call
	call.Arguments = e.Arguments
	d.call = &call
	by := []string{d.by}
	if d.out.Rewrite != nil {
		by = append(slices.Clone(d.out.Rewrite.By), d.by)
	}
	d.rewrittenBy = append(slices.Clone(d.rewrittenBy), d.by)
	d.out.Rewrite = &Rewrite{Arguments: e.Arguments, By: by}
	d.changed(string(e.Type), call.Name, e.Note)
}

// replaceResponse gives the answer other content and calls. A call keeps its id if the
// answer has one of that id, and else gets a fresh one.
func (d *draft) replaceResponse(e *abi.Effect) error {
	before := &d.response.Message
	if err := checkBlocks(e.Message.Content, slices.Concat(before.Content, d.frame.Response.Message.Content)); err != nil {
		return err
	}
	response := *d.response
	m := &response.Message
	m.Content, m.ToolCalls = e.Message.Content, slices.Clone(e.Message.ToolCalls)
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		same := func(o abi.ToolCall) bool { return o.ID == c.ID && o.Name == c.Name }
		if old := slices.IndexFunc(before.ToolCalls, same); old >= 0 {
			c.Kind = before.ToolCalls[old].Kind
			continue
		}
		if d.frame.HasTool != nil && !d.frame.HasTool(c.Name) {
			return fmt.Errorf("tool call %d: there is no tool %.80q", i, c.Name)
		}
		c.ID, c.Kind = "call_"+d.newID(), ""
	}
	if err := checkFields(m); err != nil {
		return err
	}
	d.response, d.out.Response = &response, &response
	d.out.ReplacedBy = append(slices.Clone(d.out.ReplacedBy), d.by)
	d.changed(string(e.Type), m.ID, e.Note)
	return nil
}

// replaceResult gives the call another result, and its message the content of that.
func (d *draft) replaceResult(e *abi.Effect) error {
	result := *e.Result
	edit := abi.Effect{MessageID: d.frame.ResultMessageID, Type: e.Type, Note: e.Note}
	err := d.edit(&edit, EditReplace, func(m *abi.Message) error {
		SetResult(m, &result)
		return nil
	})
	if err != nil {
		return err
	}
	d.answer, d.out.Result = &result, &result
	return nil
}

// notify leaves a notification, as long as the inbox takes more of plugins.
func (d *draft) notify(e *abi.Effect) error {
	if n := d.frame.Waiting + len(d.out.Notifications); n >= d.limits.Notifications {
		return fmt.Errorf("%d notifications of plugins wait for the thread, and more are not taken", n)
	}
	d.out.Notifications = append(slices.Clip(d.out.Notifications), abi.Notice{
		Kind: abi.NoticeCustom, TaskID: NotifiedBy + d.by, EventType: e.EventType, Payload: e.Payload, Housekeeping: true,
	})
	d.changed(string(e.Type), e.EventType, e.Note)
	return nil
}

// NotifiedBy begins the TaskID of a notification that a plugin left. The name of the
// plugin follows.
const NotifiedBy = "plugin/"

// focus counts what the hooks want to keep in view. The texts are joined at the end.
func (d *draft) focus(e *abi.Effect) error {
	d.focused += len(e.Focus) + len(focusSeparator)
	if d.focused > d.limits.TextBytes {
		return fmt.Errorf("the focuses of all plugins together have more than the %d bytes that are allowed", d.limits.TextBytes)
	}
	d.changed(string(e.Type), e.Focus, e.Note)
	return nil
}

// filterTools leaves tools out of the next request, or all others. Names that no tool has
// are noted in the change; a list of such names alone can do nothing.
func (d *draft) filterTools(e *abi.Effect) error {
	note := e.Note
	if d.frame.HasTool != nil {
		unknown := slices.DeleteFunc(slices.Clone(e.Tools), d.frame.HasTool)
		if n := len(unknown); n > 0 {
			missing := "no such tool: " + oneLine(join(unknown), d.limits.TextBytes)
			if n == len(e.Tools) {
				return errors.New(missing)
			}
			note = strings.TrimPrefix(note+"; "+missing, "; ")
		}
	}
	if e.Type == abi.EffectExcludeTools {
		d.out.ExcludeTools = append(d.out.ExcludeTools, e.Tools...)
	} else {
		d.out.IncludeTools = append(d.out.IncludeTools, e.Tools)
	}
	d.changed(string(e.Type), join(e.Tools), note)
	return nil
}

// SetResult makes a result the content of its message, and marks the message of a call that
// failed. The other metadata stays.
func SetResult(m *abi.Message, r *abi.ToolResult) {
	m.Content = ResultContent(r)
	m.Metadata = maps.Clone(m.Metadata)
	switch {
	case r.Status != abi.ToolError:
		delete(m.Metadata, abi.MetadataIsError)
	case m.Metadata == nil:
		m.Metadata = map[string]any{abi.MetadataIsError: true}
	default:
		m.Metadata[abi.MetadataIsError] = true
	}
}

// ResultContent renders a result as the content of the message that the model reads: its
// content, or its message, or its data as JSON.
func ResultContent(r *abi.ToolResult) []abi.ContentBlock {
	if len(r.Content) > 0 {
		return r.Content
	}
	text := r.Message
	if text == "" && r.Data != nil {
		text = DataText(r.Data)
	}
	return []abi.ContentBlock{abi.Text(text)}
}

// DataText renders a dynamic value for a model: a text as it is, anything else as JSON.
func DataText(data any) string {
	if s, ok := data.(string); ok {
		return s
	}
	out, err := json.Marshal(data)
	if err != nil {
		return fmt.Sprintf("[the result cannot be shown: %v]", err)
	}
	return string(out)
}
