package agent

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// supersede closes the calls that wait for a decision: they are not executed,
// the model reads why, and the listener gets an event.
func (r *run) supersede(ctx context.Context, why string) {
	r.thread.mu.Lock()
	tickets := slices.Clone(r.thread.tickets)
	r.thread.mu.Unlock()
	sortTickets(tickets)
	for _, k := range tickets {
		result := failed(k.Call, fmt.Sprintf("[The call was not executed: it waited for a decision, and %s]", why))
		r.thread.answer(k.MessageID, resultMessage(k.Call, result, k.MessageID))
		r.thread.dropTicket(k.MessageID)
		call := k.Call
		r.send(ctx, Event{Type: EventToolCallCancel, Call: &call, TargetID: k.ID, Reason: why})
	}
}

// replay executes what was decided. With calls that still wait the run is
// suspended again.
func (r *run) replay(ctx context.Context) (resumed bool, stop *Termination, err error) {
	due := r.thread.dueTickets(r.cfg.ToolMode)
	for _, k := range due {
		if err := ctx.Err(); err != nil {
			return true, nil, err
		}
		if k.Status == TicketCancelled {
			result := abi.ToolResult{Status: abi.ToolSuccess, Data: k.Decision.Result, Message: phases.DataText(k.Decision.Result)}
			stop, err = r.answered(ctx, k, result)
		} else {
			stop, err = r.resume(ctx, k)
		}
		if stop != nil || err != nil {
			return true, stop, err
		}
	}
	r.refresh()
	if open := r.thread.openTickets(); len(open) > 0 {
		return true, &Termination{Type: Suspended, Detail: open[0].Reason}, nil
	}
	return len(due) > 0, nil, nil
}

// resume executes a call about which was decided, if the gate agrees to it as it is now.
func (r *run) resume(ctx context.Context, k Ticket) (*Termination, error) {
	t := &turn{ToolCall: k.Call, key: k.Key, rewrittenBy: k.RewrittenBy}
	if text, ok := t.Arguments.(string); ok && k.Malformed {
		t.malformed = text
	}
	t.Resume = &abi.Resume{TicketID: k.ID, Reason: k.Reason, DecisionID: k.Decision.ID, Result: k.Decision.Result, Note: k.Decision.Reason}
	if k.Mode == abi.ResumeUseDecision {
		return r.answered(ctx, k, abi.ToolResult{Status: abi.ToolSuccess, Data: k.Decision.Result, Message: phases.DataText(k.Decision.Result)})
	}
	for _, p := range []abi.Phase{abi.ToolGate, abi.BeforeToolExecute} {
		v, stop, err := r.gateAgain(ctx, p, t, &k)
		if stop != nil || err != nil {
			return stop, err
		}
		if v.action != abi.GateAllow {
			return r.interceptedAgain(ctx, k, v)
		}
	}
	if r.unreadable(t) {
		return r.answered(ctx, k, failed(t.ToolCall, notJSON))
	}
	asked := t.ToolCall
	if k.By != "" && k.Mode != abi.ResumePassDecision {
		asked.Resume = nil // The decision was the gate's business.
	}
	done, err := r.executeAll(ctx, []abi.ToolCall{asked}, []string{k.Key}, r.view)
	if err != nil {
		return nil, err
	}
	r.change(ctx, t.ToolCall, &done[0], r.view)
	return r.answered(ctx, k, *done[0].result)
}

// gateAgain fires a phase before the tool, and has the gate judge what plugins rewrote. The
// question that was decided is not asked again, unless the call is another one now.
func (r *run) gateAgain(ctx context.Context, p abi.Phase, t *turn, k *Ticket) (verdict, *Termination, error) {
	decided := k.Call.Arguments
	out, stop, err := r.fire(ctx, p, t.frame())
	if stop != nil || err != nil {
		return verdict{}, stop, err
	}
	v := verdictOf(out.Gate)
	if t.rewrite(&out) && !v.stands() {
		if v, err = r.recheck(ctx, t, nil); err != nil {
			return verdict{}, nil, err
		}
	}
	k.Call.Arguments, k.RewrittenBy = t.Arguments, t.rewrittenBy
	same := v.action == abi.GateSuspend && v.gate.Ticket != nil && v.by == k.By && v.gate.Ticket.ID == k.ID
	if same && sameArguments(decided, t.Arguments) {
		v = verdict{action: abi.GateAllow}
	}
	return v, nil, nil
}

// interceptedAgain answers a resumed call that its gate did not let through.
func (r *run) interceptedAgain(ctx context.Context, k Ticket, v verdict) (*Termination, error) {
	switch {
	case v.action == abi.GateSuspend && v.gate.Ticket != nil:
		return nil, r.askAgain(ctx, k, *v.gate.Ticket, v.gate.Reason, v.by)
	case v.action == abi.GateSetResult && v.gate.Result != nil:
		result := *v.gate.Result
		result.Ticket = nil
		return r.answered(ctx, k, result)
	default:
		stop, err := r.answered(ctx, k, denied(k.Call, v.gate.Reason))
		if stop == nil && err == nil {
			stop = &Termination{Type: Blocked, Detail: v.gate.Reason}
		}
		return stop, err
	}
}

// askAgain suspends a resumed call once more, for another question.
func (r *run) askAgain(ctx context.Context, k Ticket, question abi.SuspendTicket, reason, by string) error {
	was := k
	k.SuspendTicket, k.Reason, k.By, k.Status, k.Decision = question, reason, by, TicketOpen, nil
	k.Rounds++
	k.Key = joinKey(r.id.RunID, "resumed", k.MessageID, k.Call.ID, strconv.Itoa(k.Rounds))
	k.UpdatedAt = r.cfg.Now()
	r.thread.putTicket(k)
	call, result := k.Call, suspended(k.Call)
	r.send(ctx, Event{Type: EventToolCallResumed, TargetID: k.ID, Ticket: &was, Call: &call, Result: &result})
	return r.checkpoint(ctx, nil)
}

// answered gives a call that waited its result: in the place that was reserved for it,
// or, when a compaction has replaced that place, as a message at the end. It is
// durable before the next call begins.
func (r *run) answered(ctx context.Context, k Ticket, result abi.ToolResult) (*Termination, error) {
	result.CallID, result.ToolName = k.Call.ID, k.Call.Name
	if result.Status == abi.ToolPending {
		question := abi.SuspendTicket{ID: k.Call.ID}
		if result.Ticket != nil && result.Ticket.ID != "" {
			question = *result.Ticket
		}
		return nil, r.askAgain(ctx, k, question, result.Message, "")
	}
	r.refresh()
	t := &turn{ToolCall: k.Call, key: k.Key, rewrittenBy: k.RewrittenBy}
	message := t.message(result, k.MessageID)
	messages := slices.Clone(r.view)
	at := slices.IndexFunc(messages, func(m abi.Message) bool { return m.ID == k.MessageID })
	if at < 0 {
		message.ID, message.Role, message.ToolCallID, message.Visibility = r.freshID(), abi.RoleUser, "", abi.VisibilityInternal
		at, messages = len(messages), append(messages, message)
	} else {
		messages[at] = message
	}
	shown, call := result, k.Call
	f := t.frame()
	f.messages, f.result, f.resultID = messages, &shown, message.ID
	out, stop, err := r.fire(ctx, abi.AfterToolExecute, f)
	if err != nil && len(r.who.phases.Order(abi.AfterToolExecute)) > 0 {
		result = withheld(k.Call)
		phases.SetResult(&message, &result)
	} else if len(out.Messages) == len(messages) {
		if out.Result != nil {
			result = *out.Result
		}
		message.Content, message.Metadata = out.Messages[at].Content, out.Messages[at].Metadata
	}
	if message.ID == k.MessageID {
		r.thread.answer(message.ID, message)
	} else {
		r.thread.answer(k.MessageID, abi.Message{Content: []abi.ContentBlock{abi.Text("[The result stands further down]")}})
		r.thread.append(message)
	}
	r.thread.dropTicket(k.MessageID)
	r.tally(result)
	if saved := r.checkpoint(ctx, nil); saved != nil && err == nil {
		err = saved
	}
	r.send(ctx, Event{Type: EventToolCallResumed, TargetID: k.ID, Ticket: &k, Call: &call, Result: &result, RewrittenBy: k.RewrittenBy})
	return stop, err
}
