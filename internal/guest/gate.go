package guest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// ErrNoAnswer is a gate that returned something that is neither an answer nor an empty map,
// which means that it has no opinion. It must not pass for consent.
var ErrNoAnswer = errors.New("answered nothing that this host knows")

// judges reports whether an event asks a gate for its decision.
func (g *Guest) judges(in any) bool {
	e, ok := in.(*abi.Event)
	return ok && g.gates && e.Phase == abi.ToolGate && e.Action == nil && e.Effect == nil
}

// gates reports whether a description has a hook that decides about tool calls.
func gates(d *abi.Description) bool {
	return slices.ContainsFunc(d.Hooks, func(h abi.Hook) bool { return h.Phase == abi.ToolGate && h.Mode == abi.ModeGate })
}

// answered checks that the output of a gate is an answer. out is what was decoded from it.
func (g *Guest) answered(output []byte, out any) error {
	if reply, ok := out.(**abi.Reply); !ok || *reply != nil && !reflect.ValueOf(**reply).IsZero() {
		return nil
	}
	const hint = "a gate answers with the field gate, and with an empty map if it has no opinion"
	if len(output) == 0 {
		return fmt.Errorf("%w: no output; %s", ErrNoAnswer, hint)
	}
	var fields map[string]any
	if err := g.format.Unmarshal(output, &fields); err != nil {
		return err
	}
	if fields == nil {
		return fmt.Errorf("%w: nil; %s", ErrNoAnswer, hint)
	}
	names := slices.Sorted(maps.Keys(fields))
	if len(names) == 0 || slices.ContainsFunc(names, knownField) {
		return nil
	}
	return fmt.Errorf("%w: fields %.200q; %s", ErrNoAnswer, strings.Join(names, ", "), hint)
}

// knownField reports whether a reply has a field of that name.
func knownField(name string) bool {
	for field := range reflect.TypeFor[abi.Reply]().Fields() {
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if tag == name {
			return true
		}
	}
	return false
}
