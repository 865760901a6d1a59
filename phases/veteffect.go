package phases

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// action resolves an action and copies its payload.
func (v *vetter) action(a *abi.Action) (abi.Action, error) {
	if v.hook.kind == activator {
		return abi.Action{}, errors.New("a plugin that is activated may only update state")
	}
	h := v.handler(v.r.actions, a.Key)
	if h == nil {
		return abi.Action{}, fmt.Errorf("no scheduled action handler registered for %.140s, or it is not public", a.Key)
	}
	if !slices.Contains(abi.Phases(), a.Phase) {
		return abi.Action{}, fmt.Errorf("phase %.40q is not one of the nine", a.Phase)
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
	return mergeOverride(nil, o), nil
}

// mergeOverride lays the fields that are set in o over those of base, into a new
// override.
func mergeOverride(base, o *abi.InferenceOverride) *abi.InferenceOverride {
	out := &abi.InferenceOverride{}
	for _, from := range []*abi.InferenceOverride{base, o} {
		if from == nil {
			continue
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
