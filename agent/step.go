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

// runStep is one inference and the tools that it asked for. It returns what
// ends the run, or nothing when the run goes on. Step_end is sent in any case.
func (r *run) runStep(ctx context.Context) (*Termination, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if stop, err := r.handOff(ctx); stop != nil || err != nil {
		return stop, err
	}
	r.step++
	r.announced = nil
	messageID := r.freshID()
	r.send(ctx, Event{Type: EventStepStart, MessageID: messageID})
	var stop *Termination
	called := false
	err := recovered(func() (err error) {
		called, stop, err = r.takeStep(ctx, messageID)
		return err
	})
	r.send(ctx, Event{Type: EventStepEnd, Messages: r.thread.size(), ViewMessages: len(r.view)})
	if stop != nil || err != nil {
		return stop, err
	}
	// First the tasks, then the inbox: a task that is over has told everything. And
	// listeners may have delivered something at step_end.
	r.tasks = !called && r.pending()
	arrived := r.settle()
	if arrived = r.take(ctx) || arrived; arrived || called {
		r.tasks = false
		return nil, nil
	}
	return &Termination{Type: NaturalEnd}, nil
}

// takeStep says whether the model called tools, and what ends the run.
func (r *run) takeStep(ctx context.Context, messageID string) (called bool, stop *Termination, err error) {
	r.notices = append(r.notices, r.thread.takeNotified()...)
	if stop, err := r.fire(ctx, abi.StepStart, frame{}); stop != nil || err != nil {
		return false, stop, err
	}
	if stop, err := r.compacted(ctx); stop != nil || err != nil {
		return false, stop, err
	}
	if stop, err := r.consider(ctx); stop != nil || err != nil {
		return false, stop, err
	}
	if stop, err := r.fire(ctx, abi.BeforeInference, frame{}); stop != nil || err != nil {
		return false, stop, err
	}
	answer, err := r.infer(ctx)
	if err != nil {
		r.keepPartial(ctx, answer.Response, messageID)
		return false, nil, errors.Join(err, r.failedInference(ctx, err.Error()))
	}
	r.read()
	response := r.fit(answer.Response, messageID)
	notes := r.lostCalls(answer)
	called, stop, err = r.answer(ctx, response, notes, malformed(answer, response))
	return called || len(notes) > 0, stop, err
}

// keepPartial keeps what the model had said when it came to an end. It is not kept when another
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
		note(a.Lost, "The connection broke while you wrote further calls, and they were not carried out: %s. Make them again if you still need them."),
		note(absent(a), "These calls had arguments that are not valid JSON, and were not carried out: %s. Make them again with valid JSON."),
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

// failedInference tells the plugins of a failed inference.
func (r *run) failedInference(ctx context.Context, cause string) error {
	_, err := r.fire(ctx, abi.AfterInference, frame{response: &abi.Response{Error: cause}})
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

// answer takes a response through after_inference and its tools to the log, and
// ends the step. It reports whether there are calls.
func (r *run) answer(ctx context.Context, response *abi.Response, notes []abi.Message, malformed map[string]string) (called bool, ends *Termination, err error) {
	out, stop, err := r.fireFrame(ctx, abi.AfterInference, frame{response: response})
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
	called = len(response.Message.ToolCalls) > 0
	b := newBatch(r, response.Message)
	b.original, b.malformed = original, malformed
	if stop == nil && err == nil {
		stop, err = b.execute(ctx)
	}
	// Whatever happened, what was said and done is kept, with every call answered.
	written := b.close(ctx, interruption(ctx, stop))
	r.thread.append(append(written, notes...)...)
	r.told += len(written)
	r.refresh()
	if err != nil {
		return called, nil, err
	}
	endStop, err := r.fire(ctx, abi.StepEnd, frame{})
	if err != nil {
		return called, nil, err
	}
	r.record.Steps = r.step
	if err := r.checkpoint(ctx, nil); err != nil {
		return called, nil, err
	}
	r.showMessages(ctx)
	r.showState(ctx)
	return called, cmp.Or(stop, endStop, r.stepStop(response.Message.ToolCalls)), nil
}

func interruption(ctx context.Context, stop *Termination) string {
	switch {
	case ctx.Err() != nil:
		return "[Tool execution was interrupted: the run was cancelled]"
	case stop != nil && stop.Type == Blocked:
		return "[Tool execution was interrupted: an earlier call of this step was blocked]"
	default:
		return "[Tool execution was interrupted]"
	}
}
