package phases

import (
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

// messages copies messages that a hook appends. They must be in order among
// themselves; whether they may follow the conversation is seen when they are
// applied.
func (v *vetter) messages(in []abi.Message) ([]abi.Message, error) {
	if len(in) == 0 {
		return nil, errors.New("messages is missing")
	}
	v.appended += len(in)
	if v.appended > v.limits.AppendedMessages {
		return nil, fmt.Errorf("%d messages are more than the %d that one reply may append", v.appended, v.limits.AppendedMessages)
	}
	out := make([]abi.Message, len(in))
	open := openCalls{at: -1}
	for i := range in {
		m, err := v.message(&in[i])
		if err == nil {
			err = open.next(i, &m)
		}
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		out[i] = m
	}
	if err := open.closed(); err != nil {
		return nil, fmt.Errorf("message %d: %w", open.at, err)
	}
	return out, nil
}

func (v *vetter) message(in *abi.Message) (abi.Message, error) {
	m := abi.Message{Role: in.Role, ToolCallID: in.ToolCallID, Visibility: in.Visibility, Pinned: in.Pinned}
	if m.Visibility != "" && m.Visibility != abi.VisibilityInternal {
		return m, fmt.Errorf("visibility %.40q is not known", m.Visibility)
	}
	if err := v.text("tool_call_id", m.ToolCallID, v.limits.TextBytes); err != nil {
		return m, err
	}
	var err error
	if len(in.Content) > 0 || len(in.ToolCalls) == 0 {
		if m.Content, err = v.content(in.Content); err != nil {
			return m, err
		}
	}
	if err := checkBlocks(m.Content, nil); err != nil {
		return m, err
	}
	for i := range in.ToolCalls {
		c := in.ToolCalls[i]
		if err := v.name("tool_calls: id", c.ID); err != nil {
			return m, err
		}
		if err := v.name("tool_calls: name", c.Name); err != nil {
			return m, err
		}
		if c.Arguments, err = v.dynamic(c.Arguments, v.limits.MessageBytes); err != nil {
			return m, fmt.Errorf("tool_calls: arguments: %w", err)
		}
		m.ToolCalls = append(m.ToolCalls, c)
	}
	m.Metadata, err = v.metadata(in.Metadata)
	return m, err
}

// gate copies a decision about a tool call.
func (v *vetter) gate(g *abi.GateDecision) (*abi.GateDecision, error) {
	if v.hook.Mode != abi.ModeGate {
		return nil, fmt.Errorf("the hook's mode is %s, and this needs gate", v.hook.Mode)
	}
	if v.hook.kind != phaseHook {
		return nil, errors.New("only a hook decides about a tool call")
	}
	if v.frame.Phase != abi.ToolGate {
		return nil, fmt.Errorf("a gate decides at tool_gate only, not at %s", v.frame.Phase)
	}
	if err := v.text("reason", g.Reason, v.limits.TextBytes); err != nil {
		return nil, err
	}
	out := &abi.GateDecision{Action: g.Action, Reason: g.Reason}
	var err error
	switch g.Action {
	case abi.GateAllow, abi.GateBlock:
	case abi.GateSuspend:
		out.Ticket, err = v.ticket(g.Ticket)
	case abi.GateSetResult:
		out.Result, err = v.result(g.Result)
	default:
		err = fmt.Errorf("action %.40q is not one of allow, block, suspend, set_result", g.Action)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (v *vetter) ticket(t *abi.SuspendTicket) (*abi.SuspendTicket, error) {
	if t == nil {
		return nil, errors.New("suspend needs a ticket")
	}
	if err := v.name("ticket: id", t.ID); err != nil {
		return nil, err
	}
	for _, s := range []string{t.Action, t.Message} {
		if err := v.text("ticket: action or message", s, v.limits.TextBytes); err != nil {
			return nil, err
		}
	}
	switch t.Mode {
	case "", abi.ResumeReplay, abi.ResumeUseDecision, abi.ResumePassDecision:
	default:
		return nil, fmt.Errorf("ticket: mode %.40q is not known", t.Mode)
	}
	out := *t
	var err error
	if out.Parameters, err = v.dynamic(t.Parameters, v.limits.MessageBytes); err != nil {
		return nil, fmt.Errorf("ticket: parameters: %w", err)
	}
	if out.ResponseSchema, err = v.dynamic(t.ResponseSchema, v.limits.MessageBytes); err != nil {
		return nil, fmt.Errorf("ticket: response_schema: %w", err)
	}
	return &out, nil
}

// result copies the result that a gate gives in place of the tool. It answers
// the call of the frame, whatever it says.
func (v *vetter) result(t *abi.ToolResult) (*abi.ToolResult, error) {
	if t == nil {
		return nil, errors.New("set_result needs a result")
	}
	switch t.Status {
	case abi.ToolSuccess, abi.ToolError, abi.ToolPending:
	default:
		return nil, fmt.Errorf("result: status %.40q is not one of success, error, pending", t.Status)
	}
	if err := v.text("result: message", t.Message, v.limits.MessageBytes); err != nil {
		return nil, err
	}
	out := *t
	if v.frame.Call != nil {
		out.CallID, out.ToolName = v.frame.Call.ID, v.frame.Call.Name
	}
	var err error
	if len(t.Content) > 0 {
		if out.Content, err = v.content(t.Content); err != nil {
			return nil, fmt.Errorf("result: %w", err)
		}
	}
	if err := checkBlocks(out.Content, nil); err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	if out.Data, err = v.dynamic(t.Data, v.limits.MessageBytes); err != nil {
		return nil, fmt.Errorf("result: data: %w", err)
	}
	return &out, nil
}
