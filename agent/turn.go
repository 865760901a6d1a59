package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/schema"
	"github.com/mortise-dev/mortise/phases"
)

// Fields of the metadata of a tool message. They are there when plugins rewrote its call:
// the assistant message keeps the arguments that the model wrote.
const (
	// MetadataRewrittenBy lists the plugins, MetadataArguments are the arguments that the
	// gates judged and that the tool got, if it ran.
	MetadataRewrittenBy = "rewritten_by"
	MetadataArguments   = "rewritten_arguments"
)

// turn is a call on its way through the gates to its tool. Its arguments are those that it
// would run with.
type turn struct {
	abi.ToolCall

	// key is the idempotency key of the execution.
	key         string
	rewrittenBy []string
	// malformed is what the model wrote as arguments, if that is not JSON.
	malformed string
}

// frame is the turn as a phase sees it.
func (t *turn) frame() frame {
	call := t.ToolCall
	return frame{call: &call, key: t.key, rewrittenBy: t.rewrittenBy}
}

// rewrite takes over arguments that plugins gave the call. It reports whether the gate has
// to judge the call again: not when the arguments are those that it has judged.
func (t *turn) rewrite(out *phases.Outcome) bool {
	if out.Rewrite == nil {
		return false
	}
	changed := !sameArguments(t.Arguments, out.Rewrite.Arguments)
	t.Arguments = out.Rewrite.Arguments
	t.rewrittenBy = slices.Concat(t.rewrittenBy, out.Rewrite.By)
	return changed
}

// sameArguments compares dynamic values, whatever types their numbers have.
func sameArguments(a, b any) bool {
	one, err := json.Marshal(a)
	other, failed := json.Marshal(b)
	return err == nil && failed == nil && bytes.Equal(one, other)
}

// unreadable reports whether the arguments are text that is not JSON, and not what the tool
// takes. A stream shows which arguments are malformed; a model that does not stream gives
// their text as any other value.
func (r *run) unreadable(t *turn) bool {
	text, ok := t.Arguments.(string)
	switch {
	case !ok:
		return false
	case t.malformed != "" && text == t.malformed:
		return true
	default:
		return r.hasTool(t.Name) && !json.Valid([]byte(text)) && r.checkArguments(t.Name, text) != nil
	}
}

// message is the message that carries the result of the call.
func (t *turn) message(result abi.ToolResult, id string) abi.Message {
	m := resultMessage(t.ToolCall, result, id)
	if len(t.rewrittenBy) > 0 {
		by := make([]any, len(t.rewrittenBy))
		for i := range by {
			by[i] = t.rewrittenBy[i]
		}
		if m.Metadata == nil {
			m.Metadata = make(map[string]any, 2)
		}
		m.Metadata[MetadataRewrittenBy], m.Metadata[MetadataArguments] = by, t.Arguments
	}
	return m
}

// recheck has the gate judge a call that plugins rewrote.
func (r *run) recheck(ctx context.Context, t *turn, messages []abi.Message) (verdict, error) {
	f := t.frame()
	f.messages = messages
	out, err := r.who.phases.Recheck(ctx, r.state, r.frame(abi.ToolGate, f))
	if err != nil {
		return verdict{}, err
	}
	return verdictOf(out.Gate), nil
}

// verdictOf is what the gate said of a call.
func verdictOf(g *phases.GateOutcome) verdict {
	if g == nil {
		return verdict{action: abi.GateAllow}
	}
	return verdict{action: g.Decision.Action, gate: g.Decision, by: g.By}
}

// stands reports whether a verdict holds although the call was rewritten at the same time.
// To allow a call, or to answer it, is about the arguments that it had.
func (v *verdict) stands() bool { return v.action != abi.GateAllow && v.action != abi.GateSetResult }

// checkArguments returns what is wrong with arguments of a tool, by its schema.
func (r *run) checkArguments(name string, arguments any) error {
	i := slices.IndexFunc(r.known, func(t abi.Tool) bool { return t.Name == name })
	if i < 0 {
		return errors.New("there is no such tool")
	}
	s, err := schema.Compile(r.known[i].Parameters)
	if err != nil {
		return err
	}
	return s.Check(arguments)
}
