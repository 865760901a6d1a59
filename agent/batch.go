package agent

import (
	"cmp"
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
	// asked are the calls of the response, notes the messages that follow the step in the log.
	asked []abi.ToolCall
	notes []abi.Message
	// original is what the model had written, if plugins replaced it.
	original any
	results  []abi.Message
	// malformed are the arguments of calls that are not JSON, by call.
	malformed map[string]string
	// open are the calls that were started and have no result yet; those in begun may have been executed.
	open  []abi.ToolCall
	begun map[string]bool
	// waits is why the first call is suspended that is.
	waits *Termination
	// saved reports whether the last checkpoint of the step holds the assistant message as it
	// is, revision the state of the plugins that it holds at least.
	saved    bool
	revision uint64
}

// verdict is the decision of the gate about a call, or refused, the result of a call that
// cannot be made.
type verdict struct {
	action  abi.GateAction
	gate    abi.GateDecision
	by      string
	refused *abi.ToolResult
}

// execute gates and runs the calls until one of them ends the run. Allowed calls are collected; before
// another one is answered otherwise, they are executed, and its gate is asked again, because it may see
// their results.
//
//nolint:gocognit // one loop over the calls, which keeps the way to a hook short
func (b *batch) execute(ctx context.Context) (*Termination, error) {
	if err := b.persist(ctx); err != nil {
		return nil, err
	}
	var ready []turn
	for i := range b.assistant.ToolCalls {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t := b.start(ctx, i)
		v, stop, err := b.ask(ctx, &t)
		if stop == nil && err == nil && v.action != abi.GateAllow && len(ready) > 0 {
			if stop, err = b.runAll(ctx, ready); stop == nil && err == nil {
				ready = nil
				v, stop, err = b.ask(ctx, &t)
			}
		}
		if stop != nil || err != nil {
			return stop, err
		}
		if v.action == abi.GateAllow {
			ready = append(ready, t)
			if b.run.cfg.ToolMode != Sequential {
				continue
			}
			stop, err = b.runAll(ctx, ready)
			ready = nil
		} else {
			stop, err = b.reject(ctx, &t, v)
		}
		if stop != nil || err != nil {
			return stop, err
		}
	}
	if stop, err := b.runAll(ctx, ready); stop != nil || err != nil {
		return stop, err
	}
	return b.waits, nil
}

// ask fires the gate. A call that plugins rewrote at the same time is judged again, unless
// it does not run anyway.
func (b *batch) ask(ctx context.Context, t *turn) (verdict, *Termination, error) {
	if result, refused := b.run.refuse(t.ToolCall); refused {
		return verdict{refused: &result}, nil, nil
	}
	out, stop, err := b.run.fire(ctx, abi.ToolGate, b.frame(t))
	if stop != nil || err != nil {
		return verdict{}, stop, err
	}
	v := verdictOf(out.Gate)
	if t.rewrite(&out) && !v.stands() {
		if v, err = b.run.recheck(ctx, t, b.messages()); err != nil {
			return verdict{}, nil, err
		}
	}
	if v.action == abi.GateAllow && b.run.frontend(t.Name) {
		v.action, v.gate.Ticket = abi.GateSuspend, &abi.SuspendTicket{
			ID: "suspend_" + t.ID, Action: clientTool + t.Name, Mode: abi.ResumeUseDecision, Parameters: t.Arguments,
		}
	}
	return v, nil, nil
}

// reject answers a call that its gate did not allow, also with a result that the gate gave.
func (b *batch) reject(ctx context.Context, t *turn, v verdict) (*Termination, error) {
	result, stop, err := b.intercept(ctx, t, v)
	if result != nil {
		return b.after(ctx, t, *result)
	}
	return stop, err
}

// intercept answers a call that its gate did not allow. A result that the gate gave is returned, for the plugins to see.
func (b *batch) intercept(ctx context.Context, t *turn, v verdict) (*abi.ToolResult, *Termination, error) {
	switch {
	case v.refused != nil:
		return nil, nil, b.finish(ctx, t, *v.refused)
	case v.action == abi.GateSuspend && v.gate.Ticket != nil:
		// The other calls of the step have their turn.
		return nil, nil, b.suspend(ctx, t, *v.gate.Ticket, v.gate.Reason, v.by)
	case v.action == abi.GateSetResult && v.gate.Result != nil:
		result := *v.gate.Result
		result.Ticket = nil // Plugins ask by suspending.
		return &result, nil, nil
	default: // What is not understood does not run.
		return nil, &Termination{Type: Blocked, Detail: v.gate.Reason}, b.finish(ctx, t, denied(t.ToolCall, v.gate.Reason))
	}
}

func (b *batch) start(ctx context.Context, i int) turn {
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
	return turn{ToolCall: call, key: b.key(call), malformed: b.malformed[call.ID]}
}

// before fires the last phase before the tool. A call that plugins rewrote there is judged
// again by the gate, and one whose arguments no plugin repaired is answered.
func (b *batch) before(ctx context.Context, t *turn) (verdict, *Termination, error) {
	out, stop, err := b.run.fire(ctx, abi.BeforeToolExecute, b.frame(t))
	if stop != nil || err != nil {
		return verdict{}, stop, err
	}
	v := verdict{action: abi.GateAllow}
	if t.rewrite(&out) {
		if v, err = b.run.recheck(ctx, t, b.messages()); err != nil {
			return verdict{}, nil, err
		}
	}
	if v.action == abi.GateAllow && b.run.unreadable(t) {
		result := failed(t.ToolCall, notJSON)
		v = verdict{action: abi.GateSetResult, gate: abi.GateDecision{Result: &result}}
	}
	return v, nil, nil
}

// notJSON answers a call with arguments that are not JSON.
const notJSON = "Invalid arguments: they are not valid JSON, and the call was not executed. Make it again with valid JSON."

// runAll executes calls: all before-hooks first, then all tools, and then the
// results in the order of the calls. Calls after one that the gate blocks do not run.
func (b *batch) runAll(ctx context.Context, turns []turn) (*Termination, error) {
	var verdicts []verdict
	var calls []abi.ToolCall
	var keys []string
	for i := range turns {
		v, stop, err := b.before(ctx, &turns[i])
		if stop != nil || err != nil {
			return stop, err
		}
		verdicts = append(verdicts, v)
		if v.action == abi.GateAllow {
			calls, keys = append(calls, turns[i].ToolCall), append(keys, turns[i].key)
			b.begun[turns[i].ID] = true
		} else if v.stands() && v.action != abi.GateSuspend {
			break
		}
	}
	if err := b.persist(ctx); err != nil {
		return nil, err
	}
	done, err := b.run.executeAll(ctx, calls, keys, b.messages())
	var stop *Termination
	for i := range verdicts {
		var result *abi.ToolResult
		var next *Termination
		var failed error
		if verdicts[i].action != abi.GateAllow {
			result, next, failed = b.intercept(ctx, &turns[i], verdicts[i])
		} else {
			// What was executed is kept, also when the run is to end.
			c := &done[0]
			if done = done[1:]; c.result == nil {
				continue
			}
			b.adopt(b.run.change(ctx, turns[i].ToolCall, c, b.messages()))
			result = c.result
		}
		if result != nil {
			next, failed = b.after(ctx, &turns[i], *result)
		}
		stop, err = cmp.Or(stop, next), cmp.Or(err, failed)
	}
	return stop, err
}

// after lets the plugins see, and transform, a result before the log and the listener get it.
func (b *batch) after(ctx context.Context, t *turn, result abi.ToolResult) (*Termination, error) {
	result.CallID, result.ToolName = t.ID, t.Name
	if result.Status == abi.ToolPending {
		return b.pending(ctx, t, result)
	}
	message := t.message(result, b.run.freshID())
	shown := result // A hook that was abandoned may read it for as long as it likes.
	b.results = append(b.results, message)
	f := b.frame(t)
	f.result, f.resultID = &shown, message.ID
	seen, cancel := b.run.lingering(ctx)
	defer cancel()
	out, stop, err := b.run.fire(seen, abi.AfterToolExecute, f)
	switch {
	case err != nil && len(b.run.who.phases.Order(abi.AfterToolExecute)) > 0:
		// A hook whose failure ends the run may be the one that hides secrets. What
		// it has not let through must not wait in the log for the next run.
		result = withheld(t.ToolCall)
		b.results[len(b.results)-1] = t.message(result, message.ID)
	case out.Result != nil:
		result = *out.Result
	}
	if saved := b.done(ctx, t, result); saved != nil && err == nil {
		err = saved
	}
	return stop, err
}

// pending suspends a call because its tool asks for a decision. In sequence nothing
// comes after it.
func (b *batch) pending(ctx context.Context, t *turn, result abi.ToolResult) (*Termination, error) {
	ticket := abi.SuspendTicket{ID: t.ID, Message: result.Message}
	if result.Ticket != nil && result.Ticket.ID != "" {
		ticket = *result.Ticket
	}
	if err := b.suspend(ctx, t, ticket, result.Message, ""); err != nil {
		return nil, err
	}
	if b.run.cfg.ToolMode == Sequential {
		return b.waits, nil
	}
	return nil, nil
}

// suspend makes a ticket of a call.
func (b *batch) suspend(ctx context.Context, t *turn, ticket abi.SuspendTicket, reason, by string) error {
	result := suspended(t.ToolCall)
	id := b.run.freshID()
	b.results = append(b.results, t.message(result, id))
	if ticket.Mode == "" {
		ticket.Mode = abi.ResumeReplay
	}
	b.run.thread.putTicket(Ticket{
		SuspendTicket: ticket, Status: TicketOpen, Call: t.ToolCall, RewrittenBy: t.rewrittenBy, Malformed: b.run.unreadable(t), MessageID: id, Key: t.key + "/resumed",
		Reason: reason, By: by, UpdatedAt: b.run.cfg.Now(),
	})
	if b.waits == nil {
		b.waits = &Termination{Type: Suspended, Detail: reason}
	}
	if by != "" {
		result.Message = "Tool '" + t.Name + "' suspended: awaiting approval"
	}
	result.Ticket = &ticket
	return b.done(ctx, t, result)
}

// frame is a call of the step as a phase sees it.
func (b *batch) frame(t *turn) frame {
	f := t.frame()
	f.step = b
	return f
}

// changed takes over what plugins changed of the step in a phase. At these phases they cannot append.
func (b *batch) changed(out *phases.Outcome) {
	b.adopt(out.Messages)
	id := b.assistant.ID
	edited := func(e phases.Edit) bool { return e.MessageID == id && e.Kind != phases.EditPin }
	b.saved = b.saved && !slices.ContainsFunc(out.Edits, edited)
}

// messages are what the step has come to.
func (b *batch) messages() []abi.Message {
	return slices.Concat(b.base, []abi.Message{b.assistant}, b.results)
}

// adopt takes over what plugins made of the messages.
func (b *batch) adopt(messages []abi.Message) {
	if n := len(b.base); len(messages) == n+1+len(b.results) {
		b.base, b.assistant, b.results = messages[:n:n], messages[n], slices.Clip(messages[n+1:])
	}
}

// finish answers a call without asking the plugins.
func (b *batch) finish(ctx context.Context, t *turn, result abi.ToolResult) error {
	b.results = append(b.results, t.message(result, b.run.freshID()))
	return b.done(ctx, t, result)
}

// done makes a result durable and then notifies the listener.
func (b *batch) done(ctx context.Context, t *turn, result abi.ToolResult) error {
	b.open = slices.DeleteFunc(b.open, func(c abi.ToolCall) bool { return c.ID == t.ID })
	b.run.tally(result)
	err := b.save(ctx, b.run.checkpoint)
	call := t.ToolCall
	b.run.send(ctx, Event{Type: EventToolCallDone, Call: &call, Result: &result, RewrittenBy: t.rewrittenBy})
	return err
}

// logged is the assistant message as the log keeps it.
func (b *batch) logged() abi.Message { return withOriginal(b.assistant, b.original) }

// close answers the calls that did not get their turn, and returns what the step
// adds to the log.
func (b *batch) close(ctx context.Context, stop *Termination) []abi.Message {
	for i, asked := range b.assistant.ToolCalls {
		if slices.ContainsFunc(b.results, func(m abi.Message) bool { return m.ToolCallID == asked.ID }) {
			continue
		}
		at := slices.IndexFunc(b.open, func(c abi.ToolCall) bool { return c.ID == asked.ID })
		var call abi.ToolCall
		if at >= 0 {
			call = b.open[at]
		} else {
			call = b.start(ctx, i).ToolCall
		}
		result := failed(call, interruption(ctx, stop, b.begun[call.ID]))
		b.results = append(b.results, resultMessage(call, result, b.run.freshID()))
		b.open = slices.DeleteFunc(b.open, func(c abi.ToolCall) bool { return c.ID == asked.ID })
		b.run.send(ctx, Event{Type: EventToolCallDone, Call: &call, Result: &result})
	}
	if len(b.assistant.Content) == 0 && len(b.assistant.ToolCalls) == 0 {
		return nil
	}
	return append([]abi.Message{b.logged()}, b.results...)
}
