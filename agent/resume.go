package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// supersede closes the calls that wait for a decision: they will not be carried
// out, the model reads why, and the listener hears of it.
func (r *run) supersede(ctx context.Context, why string) {
	r.thread.mu.Lock()
	tickets := slices.Clone(r.thread.tickets)
	r.thread.mu.Unlock()
	sortTickets(tickets)
	for _, k := range tickets {
		result := failed(k.Call, fmt.Sprintf("[The call was not carried out: it waited for a decision, and %s]", why))
		r.thread.answer(k.MessageID, resultMessage(k.Call, result, k.MessageID).Content)
		r.thread.dropTicket(k.MessageID)
		call := k.Call
		r.send(ctx, Event{Type: EventToolCallCancel, Call: &call, TargetID: k.ID, Reason: why})
	}
}

// replay carries out what was decided. With calls that still wait the run is
// suspended again.
func (r *run) replay(ctx context.Context) (resumed bool, stop *Termination, err error) {
	due := r.thread.dueTickets(r.cfg.ToolMode == ParallelBatch)
	for _, k := range due {
		if err := ctx.Err(); err != nil {
			return true, nil, err
		}
		if k.Status == TicketCancelled {
			result := abi.ToolResult{Status: abi.ToolSuccess, Data: k.Decision.Result, Message: dataText(k.Decision.Result)}
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

// resume carries out a call about which was decided.
func (r *run) resume(ctx context.Context, k Ticket) (*Termination, error) {
	call := k.Call
	call.Resume = &abi.Resume{TicketID: k.ID, Reason: k.Reason, DecisionID: k.Decision.ID, Result: k.Decision.Result, Note: k.Decision.Reason}
	if k.Mode == abi.ResumeUseDecision {
		return r.answered(ctx, k, abi.ToolResult{Status: abi.ToolSuccess, Data: k.Decision.Result, Message: dataText(k.Decision.Result)})
	}
	out, stop, err := r.fireFrame(ctx, abi.ToolGate, frame{call: &call})
	if stop != nil || err != nil {
		return stop, err
	}
	if out.Gate != nil {
		switch d := out.Gate.Decision; {
		case d.Action == abi.GateAllow:
		case d.Action == abi.GateSuspend && d.Ticket != nil && out.Gate.By == k.By && d.Ticket.ID == k.ID:
			// The same question of the same gate: it was answered.
		case d.Action == abi.GateSuspend && d.Ticket != nil:
			return nil, r.askAgain(ctx, k, *d.Ticket, d.Reason, out.Gate.By)
		case d.Action == abi.GateSetResult && d.Result != nil:
			result := *d.Result
			result.Ticket = nil
			return r.answered(ctx, k, result)
		default:
			stop, err := r.answered(ctx, k, denied(call, d.Reason))
			if stop == nil && err == nil {
				stop = &Termination{Type: Blocked, Detail: d.Reason}
			}
			return stop, err
		}
	}
	if _, stop, err := r.fireFrame(ctx, abi.BeforeToolExecute, frame{call: &call}); stop != nil || err != nil {
		return stop, err
	}
	asked := call
	if k.By != "" && k.Mode != abi.ResumePassDecision {
		asked.Resume = nil // The decision was the gate's business.
	}
	done, err := r.executeAll(ctx, []abi.ToolCall{asked}, []string{k.Key})
	if err != nil {
		return nil, err
	}
	r.change(ctx, call, &done[0])
	return r.answered(ctx, k, *done[0].result)
}

// askAgain suspends a resumed call once more, for another question.
func (r *run) askAgain(ctx context.Context, k Ticket, question abi.SuspendTicket, reason, by string) error {
	k.SuspendTicket, k.Reason, k.By, k.Status, k.Decision = question, reason, by, TicketOpen, nil
	k.Rounds++
	k.Key = fmt.Sprintf("%s/%s/%d", k.MessageID, k.Call.ID, k.Rounds)
	k.UpdatedAt = r.cfg.Now()
	r.thread.putTicket(k)
	call, result := k.Call, suspended(k.Call)
	r.send(ctx, Event{Type: EventToolCallResumed, TargetID: k.ID, Call: &call, Result: &result})
	return r.checkpoint(ctx, nil)
}

// answered gives a call that waited its result: in the place that was kept for it,
// or, when a compaction has taken that place, as a message at the end. It is
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
	message := resultMessage(k.Call, result, k.MessageID)
	messages := slices.Clone(r.view)
	at := slices.IndexFunc(messages, func(m abi.Message) bool { return m.ID == k.MessageID })
	if at < 0 {
		message.ID, message.Role, message.ToolCallID, message.Visibility = r.freshID(), abi.RoleUser, "", abi.VisibilityInternal
		at, messages = len(messages), append(messages, message)
	} else {
		messages[at] = message
	}
	shown, call := result, k.Call
	out, stop, err := r.fireFrame(ctx, abi.AfterToolExecute, frame{messages: messages, call: &call, result: &shown, resultID: message.ID})
	if err != nil && len(r.who.phases.Order(abi.AfterToolExecute)) > 0 {
		result = withheld(k.Call)
		message.Content = resultMessage(k.Call, result, message.ID).Content
	} else if len(out.Messages) == len(messages) {
		if edits(out, message.ID) {
			result.Content, result.Data, result.Message = out.Messages[at].Content, nil, ""
		}
		message.Content = out.Messages[at].Content
	}
	if message.ID == k.MessageID {
		r.thread.answer(message.ID, message.Content)
	} else {
		r.thread.answer(k.MessageID, []abi.ContentBlock{abi.Text("[The result stands further down]")})
		r.thread.append(message)
	}
	r.thread.dropTicket(k.MessageID)
	r.tally(result)
	if saved := r.checkpoint(ctx, nil); saved != nil && err == nil {
		err = saved
	}
	r.send(ctx, Event{Type: EventToolCallResumed, TargetID: k.ID, Call: &call, Result: &result})
	return stop, err
}
