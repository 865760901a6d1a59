package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// batch is the tool calls of one step, run in their order.
type batch struct {
	run       *run
	assistant abi.Message
	results   []abi.Message
	base      []abi.Message
}

func newBatch(r *run, assistant abi.Message) *batch {
	return &batch{run: r, assistant: assistant, base: r.view}
}

// execute gates and runs the calls until one of them ends the run.
func (b *batch) execute(ctx context.Context) (*Termination, error) {
	for i := range b.assistant.ToolCalls {
		call := b.assistant.ToolCalls[i]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		stop, err := b.one(ctx, call)
		if stop != nil || err != nil {
			return stop, err
		}
	}
	return nil, nil
}

func (b *batch) one(ctx context.Context, call abi.ToolCall) (*Termination, error) {
	r := b.run
	if call.Kind == "" {
		call.Kind = r.toolKind(call.Name)
	}
	r.send(ctx, Event{Type: EventToolCallStart, Call: &call})
	out, stop, err := r.fireFrame(ctx, abi.ToolGate, frame{messages: b.messages(), call: &call})
	if stop != nil || err != nil {
		return stop, err
	}
	if out.Gate != nil {
		d := out.Gate.Decision
		switch d.Action {
		case abi.GateBlock:
			b.finish(ctx, call, denied(call, d.Reason), r.cfg.NewID())
			return &Termination{Type: Blocked, Detail: d.Reason}, nil
		case abi.GateSuspend:
			b.finish(ctx, call, suspended(call), r.cfg.NewID())
			return &Termination{Type: Suspended, Detail: d.Reason}, nil
		case abi.GateSetResult:
			if d.Result != nil {
				return b.after(ctx, call, *d.Result)
			}
		case abi.GateAllow:
		}
	}
	if stop, err := r.fire(ctx, abi.BeforeToolExecute, frame{messages: b.messages(), call: &call}); stop != nil || err != nil {
		return stop, err
	}
	result, err := r.execute(ctx, call)
	if err != nil {
		return nil, err
	}
	return b.after(ctx, call, result)
}

// after lets the plugins see, and transform, a result before anyone else does.
func (b *batch) after(ctx context.Context, call abi.ToolCall, result abi.ToolResult) (*Termination, error) {
	r := b.run
	result.CallID, result.ToolName = call.ID, call.Name
	message := resultMessage(call, result, r.cfg.NewID())
	out, stop, err := r.fireFrame(ctx, abi.AfterToolExecute, frame{
		messages: append(b.messages(), message), call: &call, result: &result, resultID: message.ID,
	})
	if err != nil {
		// The result is real; a failing hook must not lose it.
		b.record(ctx, call, result, message)
		return nil, err
	}
	for _, e := range out.Edits {
		if e.MessageID == message.ID {
			message = e.Message
			result.Content, result.Data, result.Message = message.Content, nil, ""
		}
	}
	b.record(ctx, call, result, message)
	return stop, nil
}

func (b *batch) finish(ctx context.Context, call abi.ToolCall, result abi.ToolResult, messageID string) {
	b.record(ctx, call, result, resultMessage(call, result, messageID))
}

func (b *batch) record(ctx context.Context, call abi.ToolCall, result abi.ToolResult, message abi.Message) {
	b.results = append(b.results, message)
	b.run.send(ctx, Event{Type: EventToolCallDone, Call: &call, Result: &result})
}

// messages are the view with what this step has written so far.
func (b *batch) messages() []abi.Message {
	return slices.Concat(b.base, []abi.Message{b.assistant}, b.results)
}

// close answers the calls that did not get their turn, and returns what the step
// adds to the log.
func (b *batch) close(ctx context.Context, reason string) []abi.Message {
	for i := len(b.results); i < len(b.assistant.ToolCalls); i++ {
		call := b.assistant.ToolCalls[i]
		result := abi.ToolResult{CallID: call.ID, ToolName: call.Name, Status: abi.ToolError, Message: reason}
		b.finish(ctx, call, result, b.run.cfg.NewID())
	}
	if len(b.assistant.Content) == 0 && len(b.assistant.ToolCalls) == 0 {
		return nil
	}
	return append([]abi.Message{b.assistant}, b.results...)
}

// execute runs a tool, raced against the run's context: a tool that does not
// come back within the grace time after a cancellation is abandoned.
func (r *run) execute(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	done := make(chan abi.ToolResult, 1)
	go func() { done <- callTool(ctx, r.cfg.Tools, call) }()
	select {
	case result := <-done:
		return result, nil
	case <-ctx.Done():
	}
	grace := time.NewTimer(r.cfg.Grace)
	defer grace.Stop()
	select {
	case result := <-done:
		return result, nil
	case <-grace.C:
		r.cfg.Logger.WarnContext(ctx, "tool abandoned", "tool", call.Name, "call_id", call.ID, "grace", r.cfg.Grace)
		return abi.ToolResult{}, ctx.Err()
	}
}

// callTool turns a tool's error or panic into an error result.
func callTool(ctx context.Context, tools Tools, call abi.ToolCall) (result abi.ToolResult) {
	defer func() {
		if p := recover(); p != nil {
			result = failed(call, fmt.Sprintf("Internal error: the tool panicked: %v", p))
		}
	}()
	result, err := tools.CallTool(ctx, call)
	if err != nil {
		return failed(call, "Execution failed: "+err.Error())
	}
	if result.Status == "" {
		result.Status = abi.ToolSuccess
	}
	return result
}

func failed(call abi.ToolCall, text string) abi.ToolResult {
	return abi.ToolResult{CallID: call.ID, ToolName: call.Name, Status: abi.ToolError, Message: text}
}

func denied(call abi.ToolCall, reason string) abi.ToolResult {
	return failed(call, "Denied: "+reason)
}

func suspended(call abi.ToolCall) abi.ToolResult {
	text := fmt.Sprintf("Tool '%s' suspended: awaiting decision", call.Name)
	return abi.ToolResult{CallID: call.ID, ToolName: call.Name, Status: abi.ToolPending, Message: text}
}

func (r *run) toolKind(name string) abi.ToolKind {
	for _, t := range r.cfg.Tools.Tools() {
		if t.Name == name && t.Kind != "" {
			return t.Kind
		}
	}
	return abi.ToolOther
}

// resultMessage renders a result as the message that the model reads.
func resultMessage(call abi.ToolCall, result abi.ToolResult, id string) abi.Message {
	m := abi.Message{ID: id, Role: abi.RoleTool, ToolCallID: call.ID, Content: result.Content}
	if len(m.Content) > 0 {
		return m
	}
	text := result.Message
	if text == "" && result.Data != nil {
		text = dataText(result.Data)
	}
	m.Content = []abi.ContentBlock{abi.Text(text)}
	return m
}

func dataText(data any) string {
	if s, ok := data.(string); ok {
		return s
	}
	out, err := json.Marshal(data)
	if err != nil {
		return fmt.Sprintf("[the result cannot be shown: %v]", err)
	}
	return string(out)
}
