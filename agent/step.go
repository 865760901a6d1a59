package agent

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// runStep is one inference and the tools that it asked for. It returns what
// ends the run, or nothing when the run goes on.
func (r *run) runStep(ctx context.Context) (*Termination, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.step++
	messageID := r.freshID()
	r.send(ctx, Event{Type: EventStepStart, MessageID: messageID})
	if stop, err := r.fire(ctx, abi.StepStart, frame{}); stop != nil || err != nil {
		return stop, err
	}
	if r.cfg.Compactor != nil {
		r.cfg.Compactor.Consider(ctx, r.thread.id, r.thread.snapshot())
	}
	if stop, err := r.fire(ctx, abi.BeforeInference, frame{}); stop != nil || err != nil {
		return stop, err
	}
	response, err := r.infer(ctx)
	if err != nil {
		return nil, errors.Join(err, r.failedInference(ctx, err.Error()))
	}
	return r.answer(ctx, r.fit(response, messageID))
}

// infer asks the model and lets the compactor learn from the bill.
func (r *run) infer(ctx context.Context) (*abi.Response, error) {
	request := r.request()
	start := time.Now()
	response, err := r.cfg.Model.Infer(ctx, request)
	if err != nil {
		return nil, err
	}
	if response == nil {
		return nil, errors.New("the model answered nothing")
	}
	r.send(ctx, Event{
		Type: EventInferenceComplete, Model: response.Model, Usage: response.Usage,
		DurationMS: time.Since(start).Milliseconds(),
	})
	if u := response.Usage; u != nil && u.PromptTokens > 0 && r.cfg.Compactor != nil {
		r.cfg.Compactor.Calibrate(r.thread.id, u.PromptTokens, request.Messages)
	}
	return response, nil
}

// failedInference tells the plugins of a failed inference.
func (r *run) failedInference(ctx context.Context, cause string) error {
	_, err := r.fire(ctx, abi.AfterInference, frame{response: &abi.Response{Error: cause}})
	return err
}

// answer takes a response through after_inference and its tools to the log.
func (r *run) answer(ctx context.Context, response *abi.Response) (*Termination, error) {
	message := response.Message
	if text := message.Text(); text != "" {
		r.last = text
	}
	stop, err := r.fire(ctx, abi.AfterInference, frame{response: response})
	b := newBatch(r, message)
	if stop == nil && err == nil {
		stop, err = b.execute(ctx)
	}
	// Whatever happened, what was said and done is kept, with every call answered.
	r.thread.append(b.close(ctx, interruption(ctx, stop))...)
	r.refresh()
	if err != nil {
		return nil, err
	}
	ended := stop != nil
	endStop, err := r.endStep(ctx)
	if err != nil || ended {
		return stop, err
	}
	if endStop != nil {
		return endStop, nil
	}
	if arrived := r.settle(); arrived || len(message.ToolCalls) > 0 {
		return nil, nil
	}
	return &Termination{Type: NaturalEnd}, nil
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

func (r *run) endStep(ctx context.Context) (*Termination, error) {
	stop, err := r.fire(ctx, abi.StepEnd, frame{})
	r.send(ctx, Event{Type: EventStepEnd, Messages: len(r.thread.snapshot()), ViewMessages: len(r.view)})
	return stop, err
}
