package acp

import (
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/serve"
)

// fields are those of events that clients see.
type fields struct {
	Delta  string         `json:"delta"`
	Reason string         `json:"reason"`
	Phase  abi.Phase      `json:"phase"`
	Call   abi.ToolCall   `json:"call"`
	Result abi.ToolResult `json:"result"`
}

// updates translates an event.
func (t *turn) updates(e serve.Event) ([]sdk.SessionUpdate, error) {
	switch e.Type {
	case "text_delta", "reasoning_delta", "tool_call_started", "tool_call_ready", "phase", "tool_result", "tool_call_resumed", "tool_call_cancelled", "stream_reset":
	default:
		return nil, nil
	}
	var in fields
	if err := e.Decode(&in); err != nil {
		return nil, err //nolint:wrapcheck // it names the event
	}
	switch e.Type {
	case "text_delta":
		return []sdk.SessionUpdate{sdk.UpdateAgentMessageText(in.Delta)}, nil
	case "reasoning_delta":
		return []sdk.SessionUpdate{sdk.UpdateAgentThoughtText(in.Delta)}, nil
	case "stream_reset":
		return t.voided(in.Reason), nil
	default:
		return t.call(e.Type, &in), nil
	}
}

// call translates an event of a tool call.
func (t *turn) call(event string, in *fields) (out []sdk.SessionUpdate) {
	id := sdk.ToolCallId(in.Call.ID)
	if id == "" || event == "phase" && in.Phase != abi.BeforeToolExecute || event == "tool_call_resumed" && in.Result.Status == abi.ToolPending {
		return nil
	}
	if _, known := t.calls[in.Call.ID]; !known && event != "tool_call_resumed" && event != "tool_call_cancelled" {
		t.calls[in.Call.ID] = true
		out = append(out, t.peer.started(&in.Call))
	}
	switch event {
	case "tool_call_ready":
		return append(out, sdk.UpdateToolCall(id, sdk.WithUpdateRawInput(in.Call.Arguments)))
	case "phase":
		return append(out, sdk.UpdateToolCall(id, sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress)))
	case "tool_result", "tool_call_resumed":
		t.calls[in.Call.ID] = false
		return append(out, ended(&in.Call, &in.Result))
	case "tool_call_cancelled":
		t.calls[in.Call.ID] = false
		return append(out, failed(in.Call.ID, in.Reason))
	}
	return out
}

func (a *peer) started(c *abi.ToolCall) sdk.SessionUpdate {
	opts := []sdk.ToolCallStartOpt{sdk.WithStartKind(a.kindOf(c)), sdk.WithStartStatus(sdk.ToolCallStatusPending)}
	if c.Arguments != nil {
		opts = append(opts, sdk.WithStartRawInput(c.Arguments))
	}
	return sdk.StartToolCall(sdk.ToolCallId(c.ID), titleOf(c.Name), opts...)
}

// voided reports that what the model began to say, or to call, does not count.
func (t *turn) voided(reason string) (out []sdk.SessionUpdate) {
	for id, open := range t.calls {
		if open {
			t.calls[id] = false
			out = append(out, failed(id, reason))
		}
	}
	return append(out, sdk.UpdateAgentThoughtText("\n[The answer begins anew: "+reason+"]\n"))
}

func failed(id, why string) sdk.SessionUpdate {
	return sdk.UpdateToolCall(sdk.ToolCallId(id), sdk.WithUpdateStatus(sdk.ToolCallStatusFailed), sdk.WithUpdateContent(textContent(why)))
}

func ended(c *abi.ToolCall, r *abi.ToolResult) sdk.SessionUpdate {
	status := sdk.ToolCallStatusCompleted
	if r.Status == abi.ToolError {
		status = sdk.ToolCallStatusFailed
	}
	opts := []sdk.ToolCallUpdateOpt{sdk.WithUpdateStatus(status), sdk.WithUpdateContent(toolContent(phases.ResultContent(r)))}
	if r.Data != nil {
		opts = append(opts, sdk.WithUpdateRawOutput(r.Data))
	}
	return sdk.UpdateToolCall(sdk.ToolCallId(c.ID), opts...)
}

func textContent(text string) []sdk.ToolCallContent {
	return []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(text))}
}

func toolContent(list []abi.ContentBlock) (out []sdk.ToolCallContent) {
	for i := range list {
		if b, ok := blockOf(&list[i]); ok {
			out = append(out, sdk.ToolContent(b))
		}
	}
	return out
}

// titleOf is the name of a tool for people.
func titleOf(name string) string {
	if rest, ok := strings.CutPrefix(name, "mcp__"); ok {
		return strings.Replace(rest, "__", ": ", 1)
	}
	return name
}

// kindOf is what a call does.
func (a *peer) kindOf(c *abi.ToolCall) sdk.ToolKind {
	kind := c.Kind
	if kind == "" && a.cfg.Kind != nil {
		kind = a.cfg.Kind(c.Name)
	}
	switch kind {
	case abi.ToolRead:
		return sdk.ToolKindRead
	case abi.ToolSearch:
		return sdk.ToolKindSearch
	case abi.ToolEdit:
		return sdk.ToolKindEdit
	case abi.ToolExecute:
		return sdk.ToolKindExecute
	default:
		return sdk.ToolKindOther
	}
}
