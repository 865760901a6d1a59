package phases

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// effect checks one effect and copies what counts of it.
func (v *vetter) effect(e *abi.Effect) (abi.Effect, error) {
	if err := v.allowed(e.Type); err != nil {
		return abi.Effect{}, err
	}
	if err := v.text("note", e.Note, v.limits.TextBytes); err != nil {
		return abi.Effect{}, err
	}
	out := abi.Effect{Type: e.Type, Note: oneLine(e.Note, v.limits.TextBytes)}
	var err error
	switch e.Type {
	case abi.EffectAppendMessages, abi.EffectReplaceMessage, abi.EffectMaskMessage, abi.EffectPinMessage:
		err = v.messageEffect(e, &out)
	case abi.EffectRewriteCall, abi.EffectReplaceResponse, abi.EffectReplaceResult:
		err = v.replacement(e, &out)
	case abi.EffectAddContext:
		out.Context, err = v.context(e.Context)
	case abi.EffectExcludeTools, abi.EffectIncludeTools:
		out.Tools, err = v.tools(e)
	case abi.EffectOverrideInference:
		out.Override, err = v.override(e.Override)
	case abi.EffectStop:
		out.Code, out.Detail = e.Code, e.Detail
		err = cmp.Or(v.name("code", e.Code), v.text("detail", e.Detail, v.limits.TextBytes))
	case abi.EffectRequestCompaction:
		out.Focus = e.Focus
		err = v.text("focus", e.Focus, v.limits.TextBytes)
	case abi.EffectVetoCompaction:
		out.Detail = e.Detail
		err = v.text("detail", e.Detail, v.limits.TextBytes)
	case abi.EffectFocusCompaction:
		out.Focus = e.Focus
		err = cmp.Or(v.require("focus", e.Focus), v.text("focus", e.Focus, v.limits.TextBytes))
	case abi.EffectCustom:
		err = v.custom(e, &out)
	case abi.EffectEmit, abi.EffectNotify:
		out.EventType = e.EventType
		limit := v.limits.MessageBytes
		if e.Type == abi.EffectNotify {
			limit = v.limits.ActionBytes
		}
		out.Payload, err = v.dynamic(e.Payload, limit)
		err = cmp.Or(v.name("event_type", e.EventType), err)
	}
	return out, err
}

// messageEffect checks an effect on messages of the conversation.
func (v *vetter) messageEffect(e, out *abi.Effect) (err error) {
	if e.Type == abi.EffectAppendMessages {
		out.Messages, err = v.messages(e.Messages)
		return err
	}
	out.MessageID = e.MessageID
	switch e.Type {
	case abi.EffectReplaceMessage:
		out.Content, err = v.content(e.Content)
	case abi.EffectMaskMessage:
		out.Text, err = e.Text, v.text("text", e.Text, v.limits.MessageBytes)
	default: // a pin has nothing else
	}
	return cmp.Or(v.name("message_id", e.MessageID), err)
}

// replacement checks an effect that replaces what the event shows. A reply has one of
// each type at most.
func (v *vetter) replacement(e, out *abi.Effect) (err error) {
	if v.once[e.Type] {
		return fmt.Errorf("the reply has two %s; the later one would undo the other", e.Type)
	}
	if v.once == nil {
		v.once = make(map[abi.EffectType]bool, 1)
	}
	v.once[e.Type] = true
	switch e.Type {
	case abi.EffectRewriteCall:
		out.Arguments, err = v.arguments(e.Arguments)
	case abi.EffectReplaceResponse:
		out.Message, err = v.response(e.Message)
	default:
		out.Result, err = v.replacedResult(e.Result)
	}
	return err
}

// arguments copies other arguments of the call.
func (v *vetter) arguments(in any) (any, error) {
	switch {
	case v.frame.Call == nil:
		return nil, errors.New("the event has no call")
	case in == nil:
		return nil, errors.New("arguments is missing; give all arguments of the call, and an empty map if it takes none")
	}
	out, err := v.dynamic(in, v.limits.MessageBytes)
	if err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	if _, object := v.frame.Call.Arguments.(map[string]any); object {
		if _, object = out.(map[string]any); !object {
			return nil, fmt.Errorf("arguments: %T is no object; give all arguments of the call by their names", out)
		}
	}
	if v.frame.CheckArguments != nil {
		if err := v.frame.CheckArguments(out); err != nil {
			return nil, fmt.Errorf("the arguments do not fit the tool %.80q: %w", v.frame.Call.Name, err)
		}
	}
	return out, nil
}

// response copies content and calls of another answer.
func (v *vetter) response(in *abi.Message) (*abi.Message, error) {
	switch {
	case in == nil:
		return nil, errors.New("message is missing")
	case v.frame.Response == nil || v.frame.Response.Error != "":
		return nil, errors.New("the inference failed, and there is no answer to replace")
	case in.Role != "" && in.Role != abi.RoleAssistant:
		return nil, fmt.Errorf("message: role %.40q is not assistant; an answer stays the model's", in.Role)
	}
	out := &abi.Message{Role: abi.RoleAssistant}
	var err error
	if len(in.Content) > 0 || len(in.ToolCalls) == 0 {
		if out.Content, err = v.content(in.Content); err != nil {
			return nil, fmt.Errorf("message: %w", err)
		}
	}
	if out.ToolCalls, err = v.calls(in.ToolCalls); err != nil {
		return nil, fmt.Errorf("message: %w", err)
	}
	return out, nil
}

// calls copies the calls of a message. An id may be missing.
func (v *vetter) calls(in []abi.ToolCall) ([]abi.ToolCall, error) {
	if n := len(in); n > v.limits.Calls {
		return nil, fmt.Errorf("%d tool calls are more than the %d that are allowed", n, v.limits.Calls)
	}
	out := make([]abi.ToolCall, len(in))
	for i := range in {
		c := abi.ToolCall{ID: in[i].ID, Name: in[i].Name, Kind: in[i].Kind}
		err := cmp.Or(v.name("name", c.Name), v.text("id", c.ID, v.limits.TextBytes))
		if err == nil {
			c.Arguments, err = v.dynamic(in[i].Arguments, v.limits.MessageBytes)
		}
		if err != nil {
			return nil, fmt.Errorf("tool call %d: %w", i, err)
		}
		out[i] = c
	}
	return out, nil
}

// replacedResult copies another result of the call.
func (v *vetter) replacedResult(in *abi.ToolResult) (*abi.ToolResult, error) {
	switch {
	case v.frame.Result == nil:
		return nil, errors.New("the event has no result")
	case in == nil:
		return nil, errors.New("result is missing")
	case in.Status == abi.ToolPending:
		return nil, errors.New("result: a call that has run cannot be suspended; its status is success or error")
	}
	out, err := v.result(in)
	if err != nil {
		return nil, err
	}
	out.Ticket, out.CallID, out.ToolName = nil, v.frame.Result.CallID, v.frame.Result.ToolName
	return out, nil
}

// action resolves an action and copies its payload.
func (v *vetter) action(a *abi.Action) (abi.Action, error) {
	if v.hook.kind == activator {
		return abi.Action{}, errors.New("a plugin that is activated may only update state")
	}
	h := v.handler(v.r.actions, a.Key)
	if h == nil {
		return abi.Action{}, fmt.Errorf("no scheduled action handler registered for %.140s, or it is not public", a.Key)
	}
	if all := abi.Phases(); !slices.Contains(all, a.Phase) {
		return abi.Action{}, fmt.Errorf("phase %.40q is not one of %s", a.Phase, phaseNames(all))
	}
	payload, err := v.dynamic(a.Payload, v.limits.ActionBytes)
	return abi.Action{Phase: a.Phase, Key: h.name, Payload: payload}, err
}

// handler finds one of the plugin's own by its name, or a public one by its full
// name.
func (v *vetter) handler(all map[string]*hook, name string) *hook {
	if h := all[v.hook.plugin.name+"/"+name]; h != nil && h.plugin == v.hook.plugin {
		return h
	}
	if h := all[name]; h != nil && (h.public || h.plugin == v.hook.plugin) {
		return h
	}
	return nil
}

func (v *vetter) custom(e, out *abi.Effect) (err error) {
	h := v.handler(v.r.effects, e.Key)
	if h == nil {
		return fmt.Errorf("no effect handler registered for %.140s, or it is not public", e.Key)
	}
	out.Key = h.name
	out.Payload, err = v.dynamic(e.Payload, v.limits.ActionBytes)
	return err
}

// content copies the blocks of one message.
func (v *vetter) content(blocks []abi.ContentBlock) ([]abi.ContentBlock, error) {
	if len(blocks) == 0 {
		return nil, errors.New("content is missing; to hide a message, mask it")
	}
	size := 0
	for i := range blocks {
		b := &blocks[i]
		size += state.ValueBytes + len(b.Type) + len(b.Text) + len(b.Signature) + len(b.MediaType) + len(b.URL) + len(b.Data) + len(b.Title)
	}
	if size > v.limits.MessageBytes {
		return nil, fmt.Errorf("content has %d bytes, more than the %d that are allowed", size, v.limits.MessageBytes)
	}
	if !v.spend(size) {
		return nil, fmt.Errorf("content: the reply is larger than the %d bytes that are allowed", v.limits.ReplyBytes)
	}
	return slices.Clone(blocks), nil
}

func (v *vetter) tools(e *abi.Effect) ([]string, error) {
	if len(e.Tools) == 0 && e.Type == abi.EffectExcludeTools {
		return nil, errors.New("tools is missing")
	}
	for _, t := range e.Tools {
		if err := v.name("tools: a name", t); err != nil {
			return nil, err
		}
	}
	// Not nil: to include nothing is an answer.
	return append([]string{}, e.Tools...), nil
}

func (v *vetter) context(c *abi.ContextMessage) (*abi.ContextMessage, error) {
	if c == nil {
		return nil, errors.New("context is missing")
	}
	if c.Key == "" || len(c.Key) > maxKeyBytes {
		return nil, fmt.Errorf("context: key must have 1 to %d bytes", maxKeyBytes)
	}
	out := *c
	out.Role, out.Target = cmp.Or(c.Role, abi.RoleSystem), cmp.Or(c.Target, abi.TargetSystem)
	switch out.Role {
	case abi.RoleSystem, abi.RoleUser, abi.RoleAssistant:
	default:
		return nil, fmt.Errorf("context: role %.40q is not one of system, user, assistant", c.Role)
	}
	switch out.Target {
	case abi.TargetSystem, abi.TargetSession, abi.TargetConversation, abi.TargetSuffixSystem:
	default:
		return nil, fmt.Errorf("context: target %.40q is not one of system, session, conversation, suffix_system", c.Target)
	}
	if c.CooldownTurns < 0 {
		return nil, fmt.Errorf("context: cooldown_turns is %d, must not be negative", c.CooldownTurns)
	}
	content, err := v.content(c.Content)
	if err != nil {
		return nil, fmt.Errorf("context: %w", err)
	}
	out.Key, out.Content = v.hook.plugin.name+"/"+c.Key, content
	return &out, checkBlocks(content, nil)
}

func (v *vetter) override(o *abi.InferenceOverride) (*abi.InferenceOverride, error) {
	if o == nil {
		return nil, errors.New("override is missing")
	}
	for _, s := range []*string{o.Model, o.ReasoningEffort} {
		if s == nil {
			continue
		}
		if err := v.name("override: model or reasoning_effort", *s); err != nil {
			return nil, err
		}
	}
	for _, s := range o.FallbackModels {
		if err := v.name("override: fallback_models: a name", s); err != nil {
			return nil, err
		}
	}
	if o.Temperature != nil && (!(*o.Temperature >= 0) || *o.Temperature > 2) {
		return nil, fmt.Errorf("override: temperature %v is not between 0 and 2", *o.Temperature)
	}
	if o.TopP != nil && (!(*o.TopP >= 0) || *o.TopP > 1) {
		return nil, fmt.Errorf("override: top_p %v is not between 0 and 1", *o.TopP)
	}
	if o.MaxTokens != nil && *o.MaxTokens < 1 {
		return nil, fmt.Errorf("override: max_tokens is %d, must be at least 1", *o.MaxTokens)
	}
	return MergeOverrides(o), nil
}

// MergeOverrides lays the fields that are set in each override over those before, in a new one; nil if there are none.
func MergeOverrides(list ...*abi.InferenceOverride) (out *abi.InferenceOverride) {
	for _, from := range list {
		if from == nil {
			continue
		}
		if out == nil {
			out = &abi.InferenceOverride{}
		}
		out.Model = overlay(out.Model, from.Model)
		out.Temperature = overlay(out.Temperature, from.Temperature)
		out.TopP = overlay(out.TopP, from.TopP)
		out.MaxTokens = overlay(out.MaxTokens, from.MaxTokens)
		out.ReasoningEffort = overlay(out.ReasoningEffort, from.ReasoningEffort)
		if from.FallbackModels != nil {
			out.FallbackModels = slices.Clone(from.FallbackModels)
		}
	}
	return out
}

func overlay[T any](base, over *T) *T {
	if over == nil {
		return base
	}
	return new(*over)
}
