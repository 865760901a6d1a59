package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

// takeStep is one inference and the tools that the model calls in it. It reports whether there are calls,
// and returns what ends the run, if anything does. Step_end is sent in any case.
func (r *run) takeStep(ctx context.Context) (called bool, stop *Termination, err error) {
	if err := ctx.Err(); err != nil {
		return false, nil, err
	}
	if stop, err := r.handOff(ctx); stop != nil || err != nil {
		return false, stop, err
	}
	r.step++
	r.announced = nil
	messageID := r.freshID()
	r.send(ctx, Event{Type: EventStepStart, MessageID: messageID})
	defer func() { r.send(ctx, Event{Type: EventStepEnd, Messages: r.thread.size(), ViewMessages: len(r.view)}) }()
	defer catch(&err)
	if stop, err := r.prompt(ctx); stop != nil || err != nil {
		return false, stop, err
	}
	answer, err := r.infer(ctx)
	if err != nil {
		r.keepPartial(ctx, answer.Response, messageID)
		return false, nil, errors.Join(err, r.failedInference(ctx, err.Error()))
	}
	r.read()
	b, stop, err := r.respond(ctx, answer, messageID)
	if stop == nil && err == nil {
		stop, err = b.execute(ctx)
	}
	stop, err = b.conclude(ctx, stop, err)
	return len(b.asked)+len(b.notes) > 0, stop, err
}

// continues reports whether the run has another step to take after one that did not end it.
func (r *run) continues(ctx context.Context, called bool) bool {
	// First the tasks, then the inbox: a task that is over has delivered everything. And
	// listeners may have delivered something at step_end.
	r.tasks = !called && r.pending()
	if arrived := r.collect(ctx); arrived || called {
		r.tasks = false
		return true
	}
	return false
}

// prompt fires the phases before the inference.
func (r *run) prompt(ctx context.Context) (*Termination, error) {
	r.notices = append(r.notices, r.thread.takeNotified()...)
	if _, stop, err := r.fire(ctx, abi.StepStart, frame{}); stop != nil || err != nil {
		return stop, err
	}
	if stop, err := r.compacted(ctx); stop != nil || err != nil {
		return stop, err
	}
	if stop, err := r.consider(ctx); stop != nil || err != nil {
		return stop, err
	}
	_, stop, err := r.fire(ctx, abi.BeforeInference, frame{})
	return stop, err
}

// keepPartial keeps the model's partial answer when it came to an end. It is not kept when another
// process continues the run and asks again; its cost is counted.
func (r *run) keepPartial(ctx context.Context, response *abi.Response, messageID string) {
	if response == nil {
		return
	}
	r.bill(response)
	if response.Message.Text() == "" || errors.Is(context.Cause(ctx), ErrContinued) {
		return
	}
	m := r.fit(response, messageID).Message
	m.ToolCalls = nil
	r.thread.append(m)
	r.told++
	r.last = m.ID
	r.refresh()
}

// lostCalls words for the model what became of calls that it wrote in vain.
func (r *run) lostCalls(a llm.Answer) []abi.Message {
	note := func(calls []abi.ToolCall, format string) []abi.Message {
		if len(calls) == 0 {
			return nil
		}
		names := make([]string, len(calls))
		for i := range calls {
			names[i] = strconv.Quote(clip(calls[i].Name, maxAttribute))
		}
		return []abi.Message{{
			ID: r.freshID(), Role: abi.RoleUser, Visibility: abi.VisibilityInternal,
			Content: []abi.ContentBlock{abi.Text(fmt.Sprintf(format, strings.Join(names, ", ")))},
		}}
	}
	return slices.Concat(
		note(a.Lost, "The connection broke while you wrote further calls, and they were not executed: %s. Make them again if you still need them."),
		note(absent(a), "These calls had arguments that are not valid JSON, and were not executed: %s. Make them again with valid JSON."),
	)
}

// malformed returns the arguments of calls in a response that are not JSON, by call. Fit has
// given the calls other ids, in the same order.
func malformed(a llm.Answer, fitted *abi.Response) map[string]string {
	out := make(map[string]string, len(a.Malformed))
	for i, c := range a.Response.Message.ToolCalls {
		if text, ok := c.Arguments.(string); ok && slices.ContainsFunc(a.Malformed, func(m abi.ToolCall) bool { return sameText(&m, &c) }) {
			out[fitted.Message.ToolCalls[i].ID] = text
		}
	}
	return out
}

// failedInference notifies the plugins of a failed inference.
func (r *run) failedInference(ctx context.Context, cause string) error {
	_, _, err := r.fire(ctx, abi.AfterInference, frame{response: &abi.Response{Error: cause}})
	return err
}

// absent are the malformed calls that the response does not hold.
func absent(a llm.Answer) []abi.ToolCall {
	return slices.DeleteFunc(slices.Clone(a.Malformed), func(m abi.ToolCall) bool {
		return slices.ContainsFunc(a.Response.Message.ToolCalls, func(c abi.ToolCall) bool { return sameText(&m, &c) })
	})
}

// sameText reports whether two calls are one whose arguments are the text that the model
// wrote.
func sameText(a, b *abi.ToolCall) bool {
	one, is := a.Arguments.(string)
	other, too := b.Arguments.(string)
	return is && too && a.ID == b.ID && one == other
}

// respond takes an answer through after_inference, and returns the tool calls of the step.
func (r *run) respond(ctx context.Context, answer llm.Answer, messageID string) (*batch, *Termination, error) {
	response, notes := r.fit(answer.Response, messageID), r.lostCalls(answer)
	malformed := malformed(answer, response)
	out, stop, err := r.fire(ctx, abi.AfterInference, frame{response: response})
	original := any(nil)
	if out.Response != nil {
		r.replaced(ctx, &response.Message, &out.Response.Message)
		original, response = originalOf(&response.Message, out.ReplacedBy), out.Response
	}
	if response.Message.Text() != "" {
		r.last = response.Message.ID
	}
	if stop == nil && err == nil {
		stop = r.mayGoOn(&response.Message)
	}
	return &batch{
		run: r, base: r.view, assistant: response.Message, asked: response.Message.ToolCalls,
		original: original, malformed: malformed, notes: notes, begun: map[string]bool{},
	}, stop, err
}

// conclude writes the step to the log and ends it. Whatever happened, what was said and done
// is kept, with every call answered.
func (b *batch) conclude(ctx context.Context, stop *Termination, err error) (*Termination, error) {
	r := b.run
	written := b.close(ctx, stop)
	r.thread.append(append(written, b.notes...)...)
	r.told += len(written)
	r.refresh()
	r.record.Steps = r.step
	if err != nil {
		return nil, err
	}
	_, endStop, err := r.fire(ctx, abi.StepEnd, frame{})
	if err != nil {
		return nil, err
	}
	if err := r.checkpoint(ctx, nil); err != nil {
		return nil, err
	}
	r.showMessages(ctx)
	r.showState(ctx)
	return cmp.Or(stop, endStop, r.stepStop(b.asked)), nil
}

// What the model reads of calls that had no result when their process ended.
const (
	maybeExecuted = "[Tool execution was interrupted: the process ended, and the call may have been executed]"
	notExecuted   = "[Tool execution was interrupted: the process ended before the call was executed]"
)

// interruption is why a call has no result that was begun, or was not.
func interruption(ctx context.Context, stop *Termination, begun bool) string {
	switch {
	case errors.Is(context.Cause(ctx), ErrContinued) && begun:
		return maybeExecuted
	case errors.Is(context.Cause(ctx), ErrContinued):
		return notExecuted
	case ctx.Err() != nil:
		return "[Tool execution was interrupted: the run was cancelled]"
	case stop != nil && stop.Type == Blocked:
		return "[Tool execution was interrupted: an earlier call of this step was blocked]"
	default:
		return "[Tool execution was interrupted]"
	}
}
