package agent

import (
	"context"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// batch is the tool calls of one step. Its messages are not in the log yet: base
// is what the model saw, then come the assistant message and the results so far, in
// the order of the calls.
type batch struct {
	run       *run
	base      []abi.Message
	assistant abi.Message
	results   []abi.Message
	// open are the calls that were started and have no result yet.
	open []abi.ToolCall
	// waits is why the first call is suspended that is.
	waits *Termination
}

// verdict is what the gate said of a call.
type verdict struct {
	action abi.GateAction
	gate   abi.GateDecision
	by     string
}

func newBatch(r *run, assistant abi.Message) *batch {
	return &batch{run: r, assistant: assistant, base: r.view}
}

// execute gates and runs the calls until one of them ends the run.
func (b *batch) execute(ctx context.Context) (*Termination, error) {
	var ready []abi.ToolCall
	for i := range b.assistant.ToolCalls {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		call := b.start(ctx, i)
		next, stop, err := b.walk(ctx, call, ready)
		if stop != nil || err != nil {
			return stop, err
		}
		ready = next
	}
	if stop, err := b.runAll(ctx, ready); stop != nil || err != nil {
		return stop, err
	}
	return b.waits, nil
}

// walk takes one call through its gate. An allowed one is added to those that are
// ready; before anything else is made of it, those are carried out, and the gate is
// asked again, because it may see what they did.
func (b *batch) walk(ctx context.Context, call abi.ToolCall, ready []abi.ToolCall) ([]abi.ToolCall, *Termination, error) {
	if result, refused := b.run.refuse(call); refused {
		stop, err := b.runAll(ctx, ready)
		if stop == nil && err == nil {
			err = b.finish(ctx, call, result)
		}
		return nil, stop, err
	}
	v, stop, err := b.ask(ctx, call)
	if stop == nil && err == nil && v.action != abi.GateAllow && len(ready) > 0 {
		if stop, err = b.runAll(ctx, ready); stop == nil && err == nil {
			ready = nil
			v, stop, err = b.ask(ctx, call)
		}
	}
	if stop != nil || err != nil {
		return nil, stop, err
	}
	if v.action == abi.GateAllow {
		ready = append(ready, call)
		if b.run.cfg.ToolMode != Sequential {
			return ready, nil, nil
		}
		stop, err := b.runAll(ctx, ready)
		return nil, stop, err
	}
	stop, err = b.intercepted(ctx, call, v)
	return nil, stop, err
}

// ask fires the gate.
func (b *batch) ask(ctx context.Context, call abi.ToolCall) (verdict, *Termination, error) {
	out, stop, err := b.fire(ctx, abi.ToolGate, frame{call: &call})
	if stop != nil || err != nil {
		return verdict{}, stop, err
	}
	v := verdict{action: abi.GateAllow}
	if out.Gate != nil {
		v = verdict{action: out.Gate.Decision.Action, gate: out.Gate.Decision, by: out.Gate.By}
	}
	if v.action == abi.GateAllow && b.run.frontend(call.Name) {
		v.action, v.gate.Ticket = abi.GateSuspend, &abi.SuspendTicket{
			ID: "suspend_" + call.ID, Action: "tool:" + call.Name, Mode: abi.ResumeUseDecision, Parameters: call.Arguments,
		}
	}
	return v, nil, nil
}

// intercepted answers a call that its gate did not let through.
func (b *batch) intercepted(ctx context.Context, call abi.ToolCall, v verdict) (*Termination, error) {
	switch {
	case v.action == abi.GateSuspend && v.gate.Ticket != nil:
		// The other calls of the step have their turn.
		return nil, b.suspend(ctx, call, *v.gate.Ticket, v.gate.Reason, v.by)
	case v.action == abi.GateSetResult && v.gate.Result != nil:
		result := *v.gate.Result
		result.Ticket = nil // Plugins ask by suspending.
		return b.after(ctx, call, result)
	default: // What is not understood does not run.
		return &Termination{Type: Blocked, Detail: v.gate.Reason}, b.finish(ctx, call, denied(call, v.gate.Reason))
	}
}

func (b *batch) start(ctx context.Context, i int) abi.ToolCall {
	call := b.assistant.ToolCalls[i]
	if call.Kind == "" {
		call.Kind = b.run.toolKind(call.Name)
	}
	b.open = append(b.open, call)
	shown := call
	if b.run.announced[call.ID] {
		delete(b.run.announced, call.ID)
	} else {
		b.run.send(ctx, Event{Type: EventToolCallStart, Call: &shown})
	}
	return call
}

// runAll carries out calls: all before-hooks first, then all tools, and then the
// results in the order of the calls.
func (b *batch) runAll(ctx context.Context, calls []abi.ToolCall) (*Termination, error) {
	for i := range calls {
		if _, stop, err := b.fire(ctx, abi.BeforeToolExecute, frame{call: &calls[i]}); stop != nil || err != nil {
			return stop, err
		}
	}
	keys := make([]string, len(calls))
	for i := range calls {
		keys[i] = b.assistant.ID + "/" + calls[i].ID
	}
	done, err := b.run.executeAll(ctx, calls, keys)
	var stop *Termination
	for i := range done {
		// What was carried out is kept, also when the run is to end.
		if done[i].result == nil {
			continue
		}
		b.run.change(ctx, calls[i], &done[i])
		next, failed := b.after(ctx, calls[i], *done[i].result)
		if stop == nil {
			stop = next
		}
		if err == nil {
			err = failed
		}
	}
	return stop, err
}

// after lets the plugins see, and transform, a result before anyone else does.
func (b *batch) after(ctx context.Context, call abi.ToolCall, result abi.ToolResult) (*Termination, error) {
	result.CallID, result.ToolName = call.ID, call.Name
	if result.Status == abi.ToolPending {
		return b.pending(ctx, call, result)
	}
	message := resultMessage(call, result, b.run.freshID())
	shown := result // A hook that was abandoned may read it for as long as it likes.
	b.results = append(b.results, message)
	out, stop, err := b.fire(ctx, abi.AfterToolExecute, frame{call: &call, result: &shown, resultID: message.ID})
	if err != nil && len(b.run.who.phases.Order(abi.AfterToolExecute)) > 0 {
		// A hook whose failure ends the run may be the one that hides secrets. What
		// it has not let through must not wait in the log for the next run.
		result = withheld(call)
		b.results[len(b.results)-1] = resultMessage(call, result, message.ID)
	}
	if edits(out, message.ID) {
		result.Content, result.Data, result.Message = b.results[len(b.results)-1].Content, nil, ""
	}
	if saved := b.done(ctx, call, result); saved != nil && err == nil {
		err = saved
	}
	return stop, err
}

// edits says whether plugins changed the content of a message.
func edits(out phases.Outcome, id string) bool {
	return slices.ContainsFunc(out.Edits, func(e phases.Edit) bool { return e.MessageID == id && e.Kind != phases.EditPin })
}

// pending suspends a call because its tool asks for a decision. In sequence nothing
// comes after it.
func (b *batch) pending(ctx context.Context, call abi.ToolCall, result abi.ToolResult) (*Termination, error) {
	ticket := abi.SuspendTicket{ID: call.ID, Message: result.Message}
	if result.Ticket != nil && result.Ticket.ID != "" {
		ticket = *result.Ticket
	}
	if err := b.suspend(ctx, call, ticket, result.Message, ""); err != nil {
		return nil, err
	}
	if b.run.cfg.ToolMode == Sequential {
		return b.waits, nil
	}
	return nil, nil
}

// suspend makes a ticket of a call.
func (b *batch) suspend(ctx context.Context, call abi.ToolCall, ticket abi.SuspendTicket, reason, by string) error {
	result := suspended(call)
	id := b.run.freshID()
	b.results = append(b.results, resultMessage(call, result, id))
	if ticket.Mode == "" {
		ticket.Mode = abi.ResumeReplay
	}
	b.run.thread.putTicket(Ticket{
		SuspendTicket: ticket, Status: TicketOpen, Call: call, MessageID: id, Key: b.assistant.ID + "/" + call.ID + "/resumed",
		Reason: reason, By: by, UpdatedAt: b.run.cfg.Now(),
	})
	if b.waits == nil {
		b.waits = &Termination{Type: Suspended, Detail: reason}
	}
	if by != "" {
		result.Message = "Tool '" + call.Name + "' suspended: awaiting approval"
	}
	result.Ticket = &ticket
	return b.done(ctx, call, result)
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
func (b *batch) finish(ctx context.Context, call abi.ToolCall, result abi.ToolResult) error {
	b.results = append(b.results, resultMessage(call, result, b.run.freshID()))
	return b.done(ctx, call, result)
}

// done makes a result durable and then tells it.
func (b *batch) done(ctx context.Context, call abi.ToolCall, result abi.ToolResult) error {
	b.open = slices.DeleteFunc(b.open, func(c abi.ToolCall) bool { return c.ID == call.ID })
	b.run.tally(result)
	var err error
	if b.run.cfg.Checkpoints != nil {
		err = b.run.checkpoint(context.WithoutCancel(ctx), append([]abi.Message{b.assistant}, b.results...))
	}
	b.run.send(ctx, Event{Type: EventToolCallDone, Call: &call, Result: &result})
	return err
}

// close answers the calls that did not get their turn, and returns what the step
// adds to the log.
func (b *batch) close(ctx context.Context, reason string) []abi.Message {
	for i := len(b.results); i < len(b.assistant.ToolCalls); i++ {
		id := b.assistant.ToolCalls[i].ID
		at := slices.IndexFunc(b.open, func(c abi.ToolCall) bool { return c.ID == id })
		var call abi.ToolCall
		if at >= 0 {
			call = b.open[at]
		} else {
			call = b.start(ctx, i)
		}
		result := failed(call, reason)
		b.results = append(b.results, resultMessage(call, result, b.run.freshID()))
		b.open = slices.DeleteFunc(b.open, func(c abi.ToolCall) bool { return c.ID == id })
		b.run.send(ctx, Event{Type: EventToolCallDone, Call: &call, Result: &result})
	}
	if len(b.assistant.Content) == 0 && len(b.assistant.ToolCalls) == 0 {
		return nil
	}
	return append([]abi.Message{b.assistant}, b.results...)
}
