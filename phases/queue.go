package phases

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// The runtime's own keys. No plugin's name begins like this.
const (
	runtimeOwner = "_runtime"
	pendingName  = runtimeOwner + "/pending_actions"
	deadName     = runtimeOwner + "/dead_letters"

	opPush = abi.Op("push")
	opDrop = abi.Op("drop")
)

// pendingKey holds the actions that wait for their phase. It dies with the run,
// and is full at some point.
func pendingKey(l *Limits) *state.Key {
	return &state.Key{
		Name: pendingName, Scope: abi.ScopeRun, Merge: abi.MergeCommutative, Limit: l.ReplyBytes,
		Native: state.Native{Reduce: func(old any, op abi.Op, operand any) (any, error) {
			out, err := reduceList(old, op, operand)
			if err == nil && op == opPush && len(out) > l.PendingActions {
				return nil, fmt.Errorf("%d actions would wait, more than the %d that are allowed", len(out), l.PendingActions)
			}
			return out, err
		}},
	}
}

// deadKey holds the newest failures, and counts those that it forgot.
func deadKey(l *Limits) *state.Key {
	return &state.Key{
		Name: deadName, Scope: abi.ScopeThread, Merge: abi.MergeCommutative,
		Limit: (l.DeadLetters + 1) * (l.ActionBytes + 4*l.TextBytes + 1024),
		Native: state.Native{Reduce: func(old any, op abi.Op, operand any) (any, error) {
			m, _ := old.(map[string]any)
			list, err := reduceList(m["letters"], op, operand)
			if err != nil {
				return nil, err
			}
			forgotten, _ := m["forgotten"].(int64)
			if over := len(list) - l.DeadLetters; over > 0 {
				list, forgotten = list[over:], forgotten+int64(over)
			}
			return map[string]any{"letters": list, "forgotten": forgotten}, nil
		}},
	}
}

// reduceList adds entries, or takes those with the given ids away.
func reduceList(old any, op abi.Op, operand any) ([]any, error) {
	list, _ := old.([]any)
	entries, ok := operand.([]any)
	if !ok {
		return nil, errors.New("the operand is not a list")
	}
	switch op {
	case opPush:
		return slices.Concat(list, entries), nil
	case opDrop:
		return slices.DeleteFunc(slices.Clone(list), func(e any) bool {
			m, _ := e.(map[string]any)
			return slices.Contains(entries, m["id"])
		}), nil
	default:
		return nil, fmt.Errorf("operation %.40q is not known here", op)
	}
}

// encodeAction and decodeAction take an action to and from its value.
func encodeAction(a *abi.Action) map[string]any {
	return map[string]any{"id": a.ID, "phase": string(a.Phase), "key": a.Key, "payload": a.Payload, "by": a.By}
}

func decodeAction(v any) abi.Action {
	m, _ := v.(map[string]any)
	var a abi.Action
	a.ID, _ = m["id"].(int64)
	a.Key, _ = m["key"].(string)
	a.By, _ = m["by"].(string)
	if phase, ok := m["phase"].(string); ok {
		a.Phase = abi.Phase(phase)
	}
	a.Payload = m["payload"]
	return a
}

// pendingOf returns the actions that wait, in the order in which they were
// scheduled.
func pendingOf(s state.Snapshot) []abi.Action {
	v, _ := s.Read(pendingName)
	list, _ := v.([]any)
	if len(list) == 0 {
		return nil
	}
	out := make([]abi.Action, len(list))
	for i, e := range list {
		out[i] = decodeAction(e)
	}
	return out
}

// anyPending reports whether actions wait, quickly.
func anyPending(s state.Snapshot) bool {
	v, _ := s.Read(pendingName)
	list, _ := v.([]any)
	return len(list) > 0
}
