package agent

import (
	"context"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// batch is the tool calls of one step, run in their order. Its messages are not
// in the log yet: base is what the model saw, then come the assistant message and
// the results so far.
type batch struct {
	run       *run
	base      []abi.Message
	assistant abi.Message
	results   []abi.Message
	// open is the call that was started and has no result yet.
	open *abi.ToolCall
}

func newBatch(r *run, assistant abi.Message) *batch {
	return &batch{run: r, assistant: assistant, base: r.view}
}

// execute gates and runs the calls until one of them ends the run.
func (b *batch) execute(ctx context.Context) (*Termination, error) {
	for i := range b.assistant.ToolCalls {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		stop, err := b.one(ctx, b.start(ctx, i))
		if stop != nil || err != nil {
			return stop, err
		}
	}
	return nil, nil
}

func (b *batch) start(ctx context.Context, i int) abi.ToolCall {
	call := b.assistant.ToolCalls[i]
	if call.Kind == "" {
		call.Kind = b.run.toolKind(call.Name)
	}
	b.open = &call
	shown := call
	b.run.send(ctx, Event{Type: EventToolCallStart, Call: &shown})
	return call
}

func (b *batch) one(ctx context.Context, call abi.ToolCall) (*Termination, error) {
	if result, refused := b.run.refuse(call); refused {
		b.finish(ctx, call, result)
		return nil, nil
	}
	out, stop, err := b.fire(ctx, abi.ToolGate, frame{call: &call})
	if stop != nil || err != nil {
		return stop, err
	}
	if out.Gate != nil {
		switch d := out.Gate.Decision; {
		case d.Action == abi.GateAllow:
		case d.Action == abi.GateSuspend:
			b.finish(ctx, call, suspended(call))
			return &Termination{Type: Suspended, Detail: d.Reason}, nil
		case d.Action == abi.GateSetResult && d.Result != nil:
			return b.after(ctx, call, *d.Result)
		default: // What is not understood does not run.
			b.finish(ctx, call, denied(call, d.Reason))
			return &Termination{Type: Blocked, Detail: d.Reason}, nil
		}
	}
	if _, stop, err := b.fire(ctx, abi.BeforeToolExecute, frame{call: &call}); stop != nil || err != nil {
		return stop, err
	}
	result, err := b.run.execute(ctx, call)
	if err != nil {
		return nil, err
	}
	return b.after(ctx, call, result)
}

// after lets the plugins see, and transform, a result before anyone else does.
func (b *batch) after(ctx context.Context, call abi.ToolCall, result abi.ToolResult) (*Termination, error) {
	result.CallID, result.ToolName = call.ID, call.Name
	message := resultMessage(call, result, b.run.freshID())
	shown := result // A hook that was abandoned may read it for as long as it likes.
	b.results = append(b.results, message)
	out, stop, err := b.fire(ctx, abi.AfterToolExecute, frame{call: &call, result: &shown, resultID: message.ID})
	if err != nil && len(b.run.cfg.Phases.Order(abi.AfterToolExecute)) > 0 {
		// A hook whose failure ends the run may be the one that hides secrets. What
		// it has not let through must not wait in the log for the next run.
		result = failed(call, "[The result is withheld: a plugin did not get to see it]")
		b.results[len(b.results)-1] = resultMessage(call, result, message.ID)
	}
	edited := func(e phases.Edit) bool { return e.MessageID == message.ID && e.Kind != phases.EditPin }
	if slices.ContainsFunc(out.Edits, edited) {
		result.Content, result.Data, result.Message = b.results[len(b.results)-1].Content, nil, ""
	}
	b.done(ctx, call, result)
	return stop, err
}

// fire fires a phase at what the step has come to, and takes over what plugins
// changed in it. At these phases they cannot append.
func (b *batch) fire(ctx context.Context, p abi.Phase, f frame) (phases.Outcome, *Termination, error) {
	f.messages = slices.Concat(b.base, []abi.Message{b.assistant}, b.results)
	out, stop, err := b.run.fireFrame(ctx, p, f)
	if n := len(b.base); len(out.Messages) == len(f.messages) {
		b.base, b.assistant, b.results = out.Messages[:n:n], out.Messages[n], slices.Clip(out.Messages[n+1:])
	}
	return out, stop, err
}

// finish answers a call without asking the plugins.
func (b *batch) finish(ctx context.Context, call abi.ToolCall, result abi.ToolResult) {
	b.results = append(b.results, resultMessage(call, result, b.run.freshID()))
	b.done(ctx, call, result)
}

func (b *batch) done(ctx context.Context, call abi.ToolCall, result abi.ToolResult) {
	b.open = nil
	b.run.send(ctx, Event{Type: EventToolCallDone, Call: &call, Result: &result})
}

// close answers the calls that did not get their turn, and returns what the step
// adds to the log.
func (b *batch) close(ctx context.Context, reason string) []abi.Message {
	for i := len(b.results); i < len(b.assistant.ToolCalls); i++ {
		call := b.open
		if call == nil {
			started := b.start(ctx, i)
			call = &started
		}
		b.finish(ctx, *call, failed(*call, reason))
	}
	if len(b.assistant.Content) == 0 && len(b.assistant.ToolCalls) == 0 {
		return nil
	}
	return append([]abi.Message{b.assistant}, b.results...)
}
