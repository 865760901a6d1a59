package acp

import (
	"context"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
)

// LoadSession implements [sdk.AgentLoader]: it shows the client what is in the thread.
func (a *peer) LoadSession(ctx context.Context, p sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	head, err := a.cfg.Mailbox.Thread(ctx, string(p.SessionId))
	if err != nil {
		return sdk.LoadSessionResponse{}, failure(err)
	}
	if _, open := a.session(p.SessionId); head.Seq == 0 && open != nil {
		return sdk.LoadSessionResponse{}, unknownSession(p.SessionId)
	}
	if err := a.enter(ctx, p.SessionId, p.Cwd, p.McpServers); err != nil {
		return sdk.LoadSessionResponse{}, err
	}
	for from := 1; ; {
		page, err := a.cfg.Mailbox.Messages(ctx, string(p.SessionId), from, pageSize)
		if err != nil {
			return sdk.LoadSessionResponse{}, failure(err)
		}
		for _, kept := range page {
			m, err := agentrun.DecodeMessage(kept)
			if err == nil {
				err = a.send(ctx, p.SessionId, a.history(&m)...)
			}
			if err != nil {
				return sdk.LoadSessionResponse{}, failure(err)
			}
		}
		if from += len(page); len(page) < pageSize {
			return sdk.LoadSessionResponse{}, nil
		}
	}
}

// pageSize is how many messages are read at a time.
const pageSize = 200

// history shows a message of the log.
func (a *peer) history(m *abi.Message) (out []sdk.SessionUpdate) {
	if m.Visibility == abi.VisibilityInternal || m.Role == abi.RoleSystem {
		return nil
	}
	if m.Role == abi.RoleTool {
		return []sdk.SessionUpdate{sdk.UpdateToolCall(sdk.ToolCallId(m.ToolCallID),
			sdk.WithUpdateStatus(sdk.ToolCallStatusCompleted), sdk.WithUpdateContent(toolContent(m.Content)))}
	}
	for i := range m.Content {
		b := &m.Content[i]
		block, ok := blockOf(b)
		switch {
		case b.Type == abi.BlockThinking && b.Text != "":
			out = append(out, sdk.UpdateAgentThoughtText(b.Text))
		case ok && m.Role == abi.RoleUser:
			out = append(out, sdk.UpdateUserMessage(block))
		case ok:
			out = append(out, sdk.UpdateAgentMessage(block))
		}
	}
	for i := range m.ToolCalls {
		out = append(out, a.started(&m.ToolCalls[i]))
	}
	return out
}
