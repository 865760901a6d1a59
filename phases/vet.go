package phases

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// proposal is a reply after it was found acceptable in itself: a copy that the
// plugin cannot change any more, with its keys resolved.
type proposal struct {
	updates []update
	effects []abi.Effect
	actions []abi.Action
	gate    *abi.GateDecision
}

type update struct {
	key   key
	op    abi.Op
	value any
}

// vetter checks one reply against what its hook may do. It collects every
// refusal, so that a plugin's author sees all of them at once.
type vetter struct {
	r        *Runtime
	limits   *Limits
	hook     *hook
	frame    *Frame
	left     int // of Limits.ReplyBytes
	appended int
	refused  []Refusal
	// once are the types of which a reply may have one.
	once map[abi.EffectType]bool
}

func (v *vetter) refuse(what string, err error) {
	v.refused = append(v.refused, Refusal{What: oneLine(what, v.limits.TextBytes), Reason: oneLine(err.Error(), v.limits.TextBytes)})
}

// vet returns the proposal, which is only good if nothing was refused.
func (v *vetter) vet(reply *abi.Reply) *proposal {
	p := &proposal{}
	if n := len(reply.Updates); n > v.limits.Updates {
		v.refuse("updates", fmt.Errorf("%d are more than the %d that are allowed", n, v.limits.Updates))
		return p
	}
	if n := len(reply.Effects); n > v.limits.Effects {
		v.refuse("effects", fmt.Errorf("%d are more than the %d that are allowed", n, v.limits.Effects))
		return p
	}
	if n := len(reply.Actions); n > v.limits.Actions {
		v.refuse("actions", fmt.Errorf("%d are more than the %d that are allowed", n, v.limits.Actions))
		return p
	}
	for i := range reply.Updates {
		u, err := v.update(&reply.Updates[i])
		if err != nil {
			v.refuse(fmt.Sprintf("update %d %.40q", i, reply.Updates[i].Key), err)
			continue
		}
		p.updates = append(p.updates, u)
	}
	for i := range reply.Effects {
		e, err := v.effect(&reply.Effects[i])
		if err != nil {
			v.refuse(fmt.Sprintf("effect %d %.40s", i, reply.Effects[i].Type), err)
			continue
		}
		p.effects = append(p.effects, e)
	}
	for i := range reply.Actions {
		a, err := v.action(&reply.Actions[i])
		if err != nil {
			v.refuse(fmt.Sprintf("action %d %.40q", i, reply.Actions[i].Key), err)
			continue
		}
		p.actions = append(p.actions, a)
	}
	if reply.Gate != nil {
		gate, err := v.gate(reply.Gate)
		if err != nil {
			v.refuse("gate", err)
		}
		p.gate = gate
	}
	return p
}

func (v *vetter) update(u *abi.Update) (update, error) {
	k, ok := v.hook.plugin.keys[u.Key]
	if !ok {
		return update{}, errors.New("the plugin's description does not declare this state key")
	}
	if err := k.Takes(u.Op); err != nil {
		return update{}, err
	}
	value, err := v.dynamic(u.Value, v.limits.StateValueBytes)
	if err != nil {
		return update{}, err
	}
	return update{key: k, op: u.Op, value: value}, nil
}

// dynamic copies a dynamic value of at most limit bytes, within the budget of
// the whole reply.
func (v *vetter) dynamic(value any, limit int) (any, error) {
	allowed := min(limit, v.left)
	out, size, err := state.Clone(value, allowed)
	if errors.Is(err, state.ErrTooLarge) {
		return nil, fmt.Errorf("the value is larger than the %d bytes that are allowed", allowed)
	}
	if err != nil {
		return nil, err
	}
	v.left -= size
	return out, nil
}

// spend takes n bytes of the budget of the reply, if there are so many.
func (v *vetter) spend(n int) bool {
	v.left -= n
	return v.left >= 0
}

func (v *vetter) text(field, s string, limit int) error {
	if len(s) > limit {
		return fmt.Errorf("%s has %d bytes, more than the %d that are allowed", field, len(s), limit)
	}
	if !v.spend(len(s) + state.ValueBytes) {
		return fmt.Errorf("%s: the reply is larger than the %d bytes that are allowed", field, v.limits.ReplyBytes)
	}
	return nil
}

// require checks that a field is there.
func (v *vetter) require(field, s string) error {
	if s == "" {
		return fmt.Errorf("%s is missing", field)
	}
	return nil
}

func (v *vetter) name(field, s string) error {
	if err := v.require(field, s); err != nil {
		return err
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("%s has control characters", field)
	}
	return v.text(field, s, v.limits.TextBytes)
}

// metadata copies the metadata of an appended message and signs it.
func (v *vetter) metadata(in map[string]any) (map[string]any, error) {
	out, err := v.dynamic(in, v.limits.MessageBytes)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	signed := map[string]any{}
	if fields, ok := out.(map[string]any); ok {
		maps.Copy(signed, fields)
	}
	if _, ok := signed[abi.MetadataOriginal]; ok {
		return nil, fmt.Errorf("metadata: the field %s is reserved", abi.MetadataOriginal)
	}
	signed[MetadataBy] = v.hook.plugin.name
	return signed, nil
}
