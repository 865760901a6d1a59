package llm

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Observe is called before each request to a model that is sent, and the end that it returns when the request is over.
// The request gets the returned context, and end the same Call with the rest of its fields. Both are called
// on the goroutine that asks, which waits for them. A nil end is not called.
type Observe func(ctx context.Context, c Call) (_ context.Context, end func(Call))

// Call is one request to a model. The fields down to Model are set before it is sent.
type Call struct {
	// ThreadID, RunID, AgentID and Step are those of the [Request].
	ThreadID, RunID, AgentID string
	Step                     int
	// Provider is the model's, if it is a [Provided]; Model is the name under which it is asked.
	Provider, Model string

	Took time.Duration
	// First is the time to the first piece of a streamed answer, 0 without one.
	First time.Duration
	// ResponseModel is the provider's name of the model that answered, Stop why the answer ended; empty if not known.
	ResponseModel string
	Stop          abi.StopReason
	// Usage is what the provider billed for this request, also of an answer that broke off, as far as
	// the provider reported it. Cost is that of ClientConfig.Cost.
	Usage abi.Usage
	Cost  float64
	// Err is nil when there was an answer.
	Err error
}

// Provided is a [Model] that names its provider, as OpenTelemetry does: anthropic, openai.
type Provided interface{ Provider() string }

// providerOf names the provider of a model, if it is known.
func providerOf(m Model) string {
	if p, ok := m.(Provided); ok {
		return p.Provider()
	}
	return ""
}

// Fault reports whether the request failed for a reason that lies with the provider:
// the same request may succeed when it is asked again.
func (c Call) Fault() bool {
	failure, ok := errors.AsType[*Error](c.Err)
	return ok && failure.Retryable()
}

// Kind is the class of the failure: empty without one, and [KindCancelled] when the caller gave up.
func (c Call) Kind() Kind {
	failure, ok := errors.AsType[*Error](c.Err)
	switch {
	case c.Err == nil:
		return ""
	case errors.Is(c.Err, context.Canceled), errors.Is(c.Err, context.DeadlineExceeded) && !ok:
		return KindCancelled
	case ok:
		return failure.kind()
	default:
		return KindProvider
	}
}

// Watched returns a model that passes each request of Infer to m and to observe, with what it cost. It does
// not stream. For a nil observe it returns m. Cost may be nil.
func Watched(m Model, observe Observe, cost func(model string, u abi.Usage) float64) Model {
	if observe == nil {
		return m
	}
	return watched{m, observe, cost}
}

type watched struct {
	Model

	observe Observe
	cost    func(model string, u abi.Usage) float64
}

// Infer implements Model.
func (w watched) Infer(ctx context.Context, r Request) (*abi.Response, error) {
	c := callOf(w.Model, &r, r.Model)
	start := time.Now()
	ctx, end := w.observe(ctx, c)
	response, err := w.Model.Infer(ctx, r)
	if c.Took, c.Err = time.Since(start), err; response != nil {
		c.ResponseModel, c.Stop = response.Model, response.StopReason
		AddUsage(&c.Usage, response.Usage)
	}
	if w.cost != nil {
		c.Cost = w.cost(cmp.Or(c.ResponseModel, c.Model), c.Usage)
	}
	if end != nil {
		end(c)
	}
	return response, err //nolint:wrapcheck // the model's own
}

// callOf is what is known of a request before it is sent.
func callOf(m Model, r *Request, model string) Call {
	return Call{ThreadID: r.ThreadID, RunID: r.RunID, AgentID: r.AgentID, Step: r.Step, Provider: providerOf(m), Model: model}
}

// observed makes one request and reports it.
func (a *ask) observed(ctx context.Context, model string) (broken bool, err error) {
	if a.cfg.Observe == nil {
		return a.attempt(ctx, model)
	}
	c, before := callOf(a.cfg.Model, &a.req, model), a.total()
	start := time.Now()
	ctx, end := a.cfg.Observe(ctx, c)
	a.first = time.Time{}
	broken, err = a.attempt(ctx, model)
	c.Took, c.Err, c.ResponseModel, c.Stop = time.Since(start), err, a.got.model, a.got.stop
	if !a.first.IsZero() {
		c.First = a.first.Sub(start)
	}
	c.Usage = since(a.total(), before)
	c.Cost = a.cfg.Cost(cmp.Or(c.ResponseModel, model), c.Usage)
	if end != nil {
		end(c)
	}
	return broken, err
}

// since is what was used after before.
func since(now, before abi.Usage) abi.Usage {
	return abi.Usage{
		PromptTokens: max(0, now.PromptTokens-before.PromptTokens), CompletionTokens: max(0, now.CompletionTokens-before.CompletionTokens),
		TotalTokens: max(0, now.TotalTokens-before.TotalTokens), CacheReadTokens: max(0, now.CacheReadTokens-before.CacheReadTokens),
		CacheCreationTokens: max(0, now.CacheCreationTokens-before.CacheCreationTokens), ThinkingTokens: max(0, now.ThinkingTokens-before.ThinkingTokens),
	}
}
