package phases

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// indexFrom so many effects in one reply, messages are found through an index.
const indexFrom = 8

// maskText replaces a message whose mask gives no text.
const maskText = "[masked]"

// focusSeparator is between the focuses of several hooks.
const focusSeparator = "\n"

// draft is what a phase has come to so far. A reply is applied to a fork, which
// takes the draft's place only if all of it could be applied.
type draft struct {
	st       *State
	r        *Runtime
	messages []abi.Message
	owned    bool // messages is this draft's copy
	// result is the message that will carry the frame's result, if it is not
	// among the messages.
	result *abi.Message
	// call, response and answer are those of the frame, or what plugins made of them;
	// rewrittenBy are the plugins that rewrote the call, before this phase and in it.
	call        *abi.ToolCall
	rewrittenBy []string
	response    *abi.Response
	answer      *abi.ToolResult
	frame       *Frame
	index       map[string]int
	tx          *state.Tx
	out         Outcome
	// customs are the custom effects that were not committed yet.
	customs []custom
	focused int // bytes

	by      string
	limits  *Limits
	newID   func() string
	changes []Change
}

// begin makes d the draft of a phase that has come to nothing yet. It was zero.
func (d *draft) begin(r *Runtime, st *State, f *Frame) {
	d.st, d.r, d.messages, d.limits, d.newID = st, r, f.Messages, &r.cfg.Limits, r.cfg.NewID
	d.frame, d.call, d.rewrittenBy, d.response, d.answer = f, f.Call, f.RewrittenBy, f.Response, f.Result
	if f.Result != nil && f.ResultMessageID != "" && d.find(f.ResultMessageID) < 0 {
		d.result = &abi.Message{
			ID: f.ResultMessageID, Role: abi.RoleTool, ToolCallID: f.Result.CallID, Content: f.Result.Content,
		}
		if f.Call != nil {
			d.result.ToolCallID = f.Call.ID
		}
	}
}

// fork starts to apply the reply of a plugin. What a fork that is thrown away
// wrote is never seen: it appended beyond the lengths that its origin knows, and
// had copies of what it changed in place.
func (d *draft) fork(by string) *draft {
	n := *d
	n.owned, n.by, n.changes = false, by, nil
	return &n
}

func (d *draft) changed(what, target, note string) {
	d.changes = append(d.changes, Change{What: what, Target: oneLine(target, d.limits.TextBytes), Note: note})
}

func (d *draft) update(u update) error {
	if d.st.store.Key(u.key.Name) == nil {
		return errors.New("the state of this run has no such key any more; a runtime must adopt it first")
	}
	if err := d.tx.Update(u.key.Key, u.op, u.value); err != nil {
		return err
	}
	d.changed(string(u.op), u.key.Name, "")
	return nil
}

// schedule puts actions in the queue. Their keys are full ones by now.
func (d *draft) schedule(actions []abi.Action) error {
	entries := make([]any, len(actions))
	for i := range actions {
		a := actions[i]
		a.ID, a.By = d.st.ids.Add(1), d.by
		entries[i] = encodeAction(&a)
		d.changed("schedule", a.Key, "")
	}
	return d.tx.Update(d.r.pending, opPush, entries)
}

func (d *draft) effect(e *abi.Effect) error {
	switch e.Type {
	case abi.EffectAppendMessages:
		return d.append(e)
	case abi.EffectReplaceMessage:
		return d.edit(e, EditReplace, func(m *abi.Message) error {
			original := m.Content
			m.Content = e.Content
			return checkBlocks(e.Content, original)
		})
	case abi.EffectMaskMessage:
		return d.edit(e, EditMask, func(m *abi.Message) error {
			text := e.Text
			if text == "" {
				text = maskText
			}
			m.Content = []abi.ContentBlock{abi.Text(text)}
			return nil
		})
	case abi.EffectPinMessage:
		return d.edit(e, EditPin, func(m *abi.Message) error {
			m.Pinned = true
			return nil
		})
	case abi.EffectAddContext:
		d.addContext(e.Context)
		d.changed(string(e.Type), e.Context.Key, e.Note)
	case abi.EffectExcludeTools, abi.EffectIncludeTools:
		return d.filterTools(e)
	case abi.EffectOverrideInference:
		d.out.Override = MergeOverrides(d.out.Override, e.Override)
		d.changed(string(e.Type), "", e.Note)
	case abi.EffectEmit:
		d.out.Emitted = append(d.out.Emitted, Emitted{EventType: e.EventType, Payload: e.Payload, By: d.by})
		d.changed(string(e.Type), e.EventType, e.Note)
	case abi.EffectCustom:
		d.customs = append(d.customs, custom{id: d.st.ids.Add(1), handler: d.r.effects[e.Key], effect: e, by: d.by})
		d.changed(string(e.Type), e.Key, e.Note)
	case abi.EffectStop:
		// Of several stops and compaction requests one is chosen at the end.
		d.changed(string(e.Type), e.Code, e.Note)
	case abi.EffectRequestCompaction:
		d.changed(string(e.Type), e.Focus, e.Note)
	case abi.EffectVetoCompaction:
		d.changed(string(e.Type), e.Detail, e.Note)
	case abi.EffectFocusCompaction:
		return d.focus(e)
	case abi.EffectRewriteCall:
		d.rewrite(e)
	case abi.EffectReplaceResponse:
		return d.replaceResponse(e)
	case abi.EffectReplaceResult:
		return d.replaceResult(e)
	case abi.EffectNotify:
		return d.notify(e)
	}
	return nil
}

func (d *draft) addContext(c *abi.ContextMessage) {
	same := func(o abi.ContextMessage) bool { return o.Key == c.Key }
	d.out.Context = append(slices.DeleteFunc(slices.Clone(d.out.Context), same), *c)
}

func (d *draft) append(e *abi.Effect) error {
	if hasOpenCalls(d.messages) {
		return errors.New("the conversation ends in calls that wait for their results; append at step_end")
	}
	d.own()
	for _, m := range e.Messages {
		m.ID = d.newID()
		if m.ID == "" || d.find(m.ID) >= 0 {
			return fmt.Errorf("the id %q from Config.NewID is empty or taken", m.ID)
		}
		if d.index != nil {
			d.index[m.ID] = len(d.messages)
		}
		d.messages = append(d.messages, m)
		d.out.Appended = append(d.out.Appended, m)
		d.changed(string(e.Type), m.ID, e.Note)
	}
	return nil
}

// edit changes one message. Pinned messages stay as they are; to pin one again
// changes nothing.
func (d *draft) edit(e *abi.Effect, kind EditKind, change func(*abi.Message) error) error {
	i := d.find(e.MessageID)
	var m abi.Message
	switch {
	case i >= 0:
		m = d.messages[i]
	case d.result != nil && d.result.ID == e.MessageID:
		m = *d.result
	default:
		return fmt.Errorf("there is no message %.80q", e.MessageID)
	}
	if m.Pinned {
		if kind == EditPin {
			return nil
		}
		return fmt.Errorf("message %.80q is pinned", e.MessageID)
	}
	if err := change(&m); err != nil {
		return err
	}
	if i >= 0 {
		d.own()
		d.messages[i] = m
		if at := slices.IndexFunc(d.out.Appended, func(a abi.Message) bool { return a.ID == m.ID }); at >= 0 {
			d.out.Appended = slices.Clone(d.out.Appended)
			d.out.Appended[at] = m
		}
	} else {
		d.result = &m
	}
	if kind != EditPin && d.answer != nil && m.ID == d.frame.ResultMessageID {
		answer := *d.answer
		answer.Content, answer.Data, answer.Message = m.Content, nil, ""
		d.answer, d.out.Result = &answer, &answer
	}
	d.out.Edits = append(d.out.Edits, Edit{MessageID: e.MessageID, Kind: kind, Message: m, By: d.by, Note: e.Note})
	d.changed(string(e.Type), e.MessageID, e.Note)
	return nil
}

// own makes the messages this draft's to change.
func (d *draft) own() {
	if !d.owned {
		d.messages, d.owned = slices.Clone(d.messages), true
	}
}

// find returns the index of a message, or -1.
func (d *draft) find(id string) int {
	if d.index != nil {
		// Entries of a reply that was not accepted may point anywhere.
		if i, ok := d.index[id]; ok && i < len(d.messages) && d.messages[i].ID == id {
			return i
		}
		return -1
	}
	for i := range slices.Backward(d.messages) {
		if d.messages[i].ID == id {
			return i
		}
	}
	return -1
}

func (d *draft) buildIndex() {
	if d.index != nil {
		return
	}
	d.index = make(map[string]int, len(d.messages))
	for i := range d.messages {
		d.index[d.messages[i].ID] = i
	}
}
