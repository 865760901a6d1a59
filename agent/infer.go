package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

// infer asks the model and lets the compactor learn from the bill. When the
// provider refuses the context as too large, it is cut at once, and the model is asked
// once more.
func (r *run) infer(ctx context.Context) (llm.Answer, error) {
	request := r.request()
	answer, err := r.ask(ctx, request)
	if overflows(err) && ctx.Err() == nil {
		return r.retry(ctx, request, err)
	}
	return answer, err
}

func (r *run) ask(ctx context.Context, request llm.Request) (llm.Answer, error) {
	// Whatever plugins and compaction did, a broken conversation never reaches a
	// model provider.
	if err := phases.CheckStructure(request.Messages); err != nil {
		return llm.Answer{}, fmt.Errorf("the request is not valid: %w", err)
	}
	start := time.Now()
	answer, err := r.who.client.Ask(ctx, request, func(d llm.Delta) { r.streamed(ctx, d) })
	if errors.Is(err, llm.ErrPanic) {
		err = fmt.Errorf("%w: %w", ErrPanic, err)
	}
	if err != nil {
		return answer, err
	}
	response := answer.Response
	r.bill(response)
	r.send(ctx, Event{
		Type: EventInferenceComplete, Model: response.Model, Usage: response.Usage,
		DurationMS: time.Since(start).Milliseconds(),
	})
	r.showReasoning(ctx, &response.Message)
	if u := response.Usage; u != nil && u.PromptTokens > 0 && answer.Requests == 1 && r.cfg.Compactor != nil {
		r.cfg.Compactor.Calibrate(r.thread.id, u.PromptTokens, request.Messages)
		if b, ok := r.cfg.Compactor.(Billing); ok {
			b.Billed(r.thread.id, response.Model, *u)
		}
	}
	return answer, nil
}

// bill counts what an answer cost.
func (r *run) bill(response *abi.Response) {
	if response.Usage == nil {
		return
	}
	llm.AddUsage(&r.record.Usage, response.Usage)
	r.record.Cost += r.agent.cost(response.Model, *response.Usage)
}

// cost is what a usage costs. A function that panics costs nothing.
func (a *Agent) cost(model string, u abi.Usage) (cost float64) {
	err := recovered(func() error {
		cost = max(0, a.cfg.Cost(model, u))
		return nil
	})
	if err != nil {
		a.cfg.Logger.Error("cost function panicked", "model", model, "error", err)
	}
	return cost
}

// streamed passes on what is streamed.
func (r *run) streamed(ctx context.Context, d llm.Delta) {
	call := func(typ EventType) {
		r.send(ctx, Event{Type: typ, Call: &abi.ToolCall{ID: d.CallID, Name: d.Name, Arguments: d.Arguments}, Delta: d.Text})
	}
	switch d.Type {
	case llm.DeltaText:
		r.send(ctx, Event{Type: EventTextDelta, Delta: d.Text})
	case llm.DeltaReasoning:
		r.send(ctx, Event{Type: EventReasoningDelta, Delta: d.Text})
	case llm.DeltaCallStart:
		if r.announced == nil {
			r.announced = make(map[string]bool)
		}
		r.announced[d.CallID] = true
		call(EventToolCallStart)
	case llm.DeltaCallArguments:
		call(EventToolCallDelta)
	case llm.DeltaCallReady:
		call(EventToolCallReady)
	case llm.DeltaCallCancel:
		delete(r.announced, d.CallID)
		r.send(ctx, Event{Type: EventToolCallCancel, Call: &abi.ToolCall{ID: d.CallID, Name: d.Name}, Reason: d.Text})
	case llm.DeltaReset:
		r.announced = nil
		r.send(ctx, Event{Type: EventStreamReset, Reason: d.Text})
	default:
	}
}
