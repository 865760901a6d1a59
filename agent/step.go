package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// runStep is one inference and the tools that it asked for. It returns what
// ends the run, or nothing when the run goes on. Step_end is sent in any case.
func (r *run) runStep(ctx context.Context) (*Termination, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.step++
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
	// Listeners may have delivered something at step_end.
	if arrived := r.settle(); arrived || called {
		return nil, nil
	}
	return &Termination{Type: NaturalEnd}, nil
}

// takeStep says whether the model called tools, and what ends the run.
func (r *run) takeStep(ctx context.Context, messageID string) (called bool, stop *Termination, err error) {
	if stop, err := r.fire(ctx, abi.StepStart, frame{}); stop != nil || err != nil {
		return false, stop, err
	}
	if r.cfg.Compactor != nil {
		r.cfg.Compactor.Consider(ctx, r.thread.id, r.thread.snapshot())
	}
	if stop, err := r.fire(ctx, abi.BeforeInference, frame{}); stop != nil || err != nil {
		return false, stop, err
	}
	response, err := r.infer(ctx)
	if err != nil {
		return false, nil, errors.Join(err, r.failedInference(ctx, err.Error()))
	}
	response = r.fit(response, messageID)
	stop, err = r.answer(ctx, response)
	return len(response.Message.ToolCalls) > 0, stop, err
}

// infer asks the model and lets the compactor learn from the bill.
func (r *run) infer(ctx context.Context) (*abi.Response, error) {
	request := r.request()
	// Whatever plugins and compaction did, a broken conversation never reaches a
	// model provider.
	if err := phases.CheckStructure(request.Messages); err != nil {
		return nil, fmt.Errorf("the request is not valid: %w", err)
	}
	start := time.Now()
	var response *abi.Response
	err := recovered(func() (err error) {
		response, err = r.cfg.Model.Infer(ctx, request)
		return err
	})
	if errors.Is(err, ErrPanic) {
		err = fmt.Errorf("model %w", err)
	}
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

// answer takes a response through after_inference and its tools to the log, and
// ends the step.
func (r *run) answer(ctx context.Context, response *abi.Response) (*Termination, error) {
	if response.Message.Text() != "" {
		r.last = response.Message.ID
	}
	stop, err := r.fire(ctx, abi.AfterInference, frame{response: response})
	b := newBatch(r, response.Message)
	if stop == nil && err == nil {
		stop, err = b.execute(ctx)
	}
	// Whatever happened, what was said and done is kept, with every call answered.
	r.thread.append(b.close(ctx, interruption(ctx, stop))...)
	r.refresh()
	if err != nil {
		return nil, err
	}
	endStop, err := r.fire(ctx, abi.StepEnd, frame{})
	if err != nil {
		return nil, err
	}
	return cmp.Or(stop, endStop), nil
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
