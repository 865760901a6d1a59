package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// ErrPanic is a model that panicked.
var ErrPanic = errors.New("the model panicked")

// ClientConfig makes a [Client]. Model is required.
type ClientConfig struct {
	// Model is asked; if it is a [Streamer], its answers are streamed.
	Model Model
	Retry Retry
	// Breaker may be shared with other clients. Nil lets everything through.
	Breaker *Breaker
	// Partials keeps streams under way, by run and step. Nil keeps none.
	Partials Partials
	// Observe receives each request; nil observes nothing.
	Observe Observe
	// Cost is what a usage costs, for [Call]; nil costs nothing.
	Cost func(model string, u abi.Usage) float64
	// Grace is how long a request that was given up may take to return, 5 s when 0.
	// One that takes longer is left behind, with its goroutine.
	Grace time.Duration
	// Logger gets retries and requests that were left behind. Nil discards.
	Logger *slog.Logger
}

// Client asks a model until there is an answer: it retries, falls back to other
// models, takes up streams that broke off, and continues answers that were cut at the
// output limit. It is safe for concurrent use and starts no goroutine that
// outlives Ask, except that of a model which ignores its context for longer than Grace.
type Client struct {
	cfg ClientConfig
}

// Answer is what asking came to.
type Answer struct {
	// Response is whole when there is no error, and else as much as had come, without
	// calls; nil when that is nothing.
	Response *abi.Response
	// Lost are calls that the model had begun when its stream broke off and that it
	// could not repeat, because others were complete. Malformed ones have arguments that
	// are not JSON. Neither are in the response, but for malformed ones with
	// Request.KeepMalformed.
	Lost, Malformed []abi.ToolCall
	// Requests counts those that were sent.
	Requests int
}

// NewClient checks the config and returns a client.
func NewClient(cfg ClientConfig) (*Client, error) {
	if cfg.Model == nil {
		return nil, errors.New("llm: ClientConfig.Model is missing")
	}
	if cfg.Grace < 0 {
		return nil, fmt.Errorf("llm: ClientConfig.Grace is %v, must not be negative", cfg.Grace)
	}
	var err error
	if cfg.Retry, err = cfg.Retry.withDefaults(); err != nil {
		return nil, err
	}
	cfg.Grace = cmp.Or(cfg.Grace, 5*time.Second)
	if cfg.Cost == nil {
		cfg.Cost = func(string, abi.Usage) float64 { return 0 }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Client{cfg: cfg}, nil
}

// Ask asks. Listen receives what is streamed, on the caller's goroutine; it may be
// nil. The error is the last one of the model, or that of ctx.
func (c *Client) Ask(ctx context.Context, r Request, listen func(Delta)) (Answer, error) {
	if r.Override != nil && r.Override.Model != nil {
		if *r.Override.Model == "" {
			return Answer{}, &Error{Kind: KindInvalidRequest, Message: "the override names an empty model"}
		}
		r.Model = *r.Override.Model
	}
	if listen == nil {
		listen = func(Delta) {}
	}
	a := &ask{Client: c, req: r, listen: listen}
	a.takeUp(ctx)
	for {
		if a.over {
			return a.done(ctx), nil
		}
		broken, err := a.request(ctx)
		switch {
		case err == nil && a.goOn():
		case err == nil:
			return a.done(ctx), nil
		case broken && a.recoveries < c.cfg.Retry.MaxStreamRetries && ctx.Err() == nil:
			a.recoveries++
			if err := a.recover(ctx, err); err != nil {
				return a.partly(ctx), err
			}
		default:
			return a.partly(ctx), err
		}
	}
}

// ask is one question until it has its answer.
type ask struct {
	*Client
	req    Request
	listen func(Delta)
	got    assembly
	// whole is a response that a model without streaming gave.
	whole *abi.Response
	// suffix stands behind the request's messages: what was said before a break, and
	// the request to continue.
	suffix                    []abi.Message
	recoveries, continuations int
	requests, deltas          int
	usage                     abi.Usage
	lost, malformed           []abi.ToolCall
	places                    []int // of malformed calls among all of the answer
	calls                     []abi.ToolCall
	over                      bool
	// first is when the first piece of the latest answer came.
	first time.Time
}

// request sends the request until it is answered, to one model after the other.
// It reports whether the answer broke off on the way.
func (a *ask) request(ctx context.Context) (broken bool, err error) {
	for _, model := range append([]string{a.req.Model}, a.fallbacks()...) {
		var next bool
		broken, next, err = a.try(ctx, model, err)
		if !next {
			return broken, err
		}
	}
	if err == nil {
		err = &Error{Kind: KindAllModelsUnavailable, Message: "circuit breakers open"}
	}
	return false, err
}

// try sends the request to one model. Next means that another one may be asked;
// last is the error of the one before.
func (a *ask) try(ctx context.Context, model string, last error) (broken, next bool, err error) {
	err = last
	for n := 0; a.cfg.Breaker.Allow(model); n++ {
		broken, err = a.observed(ctx, model)
		failure, known := errors.AsType[*Error](err)
		if err != nil && !known {
			failure = &Error{Kind: KindInvalidRequest}
		}
		a.cfg.Breaker.Report(model, failure)
		switch {
		case err == nil || broken || !failure.Retryable() || ctx.Err() != nil:
			return broken, false, err
		case failure.RetryAfter > maxRetryAfter:
			return false, false, fmt.Errorf("llm: the provider asks to wait %v, which is longer than %v: %w", failure.RetryAfter, maxRetryAfter, err)
		case n >= a.cfg.Retry.MaxRetries:
			return false, true, err
		}
		delay := a.cfg.Retry.Delay(n, failure)
		a.cfg.Logger.WarnContext(ctx, "inference is tried again", "run_id", a.req.RunID, "model", model, "kind", string(failure.Kind), "delay", delay)
		if err := sleep(ctx, delay); err != nil {
			return false, false, err
		}
	}
	return false, true, err
}

// fallbacks are the models to ask after the first one.
func (a *ask) fallbacks() []string {
	if o := a.req.Override; o != nil && o.FallbackModels != nil {
		return o.FallbackModels
	}
	return a.cfg.Retry.FallbackModels
}

// attempt sends one request to one model.
func (a *ask) attempt(ctx context.Context, model string) (broken bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	a.requests++
	r := a.req
	r.Model = model
	r.Messages = append(slices.Clip(r.Messages), a.suffix...)
	if s, ok := a.cfg.Model.(Streamer); ok {
		return a.stream(ctx, s, r)
	}
	return false, a.infer(ctx, r)
}

// done is the answer in full.
func (a *ask) done(ctx context.Context) Answer {
	a.forget(ctx)
	a.keepMalformed()
	out := Answer{Lost: a.lost, Malformed: a.malformed, Requests: a.requests}
	response := abi.Response{Model: cmp.Or(a.got.model, a.req.Model), StopReason: a.got.stop}
	if a.whole != nil {
		response = *a.whole
	}
	response.Message.Role = abi.RoleAssistant
	response.Message.Content = a.got.Content
	response.Message.ToolCalls = a.calls
	response.Usage = a.bill()
	out.Response = &response
	return out
}

// partly is what had come when it came to an end.
func (a *ask) partly(ctx context.Context) Answer {
	a.forget(ctx)
	out := Answer{Requests: a.requests}
	a.got.keepText()
	if len(a.got.Content) == 0 && a.usage == (abi.Usage{}) && a.got.usage == (abi.Usage{}) {
		return out
	}
	out.Response = &abi.Response{
		Model: cmp.Or(a.got.model, a.req.Model), StopReason: abi.StopEndTurn, Usage: a.bill(),
		Message: abi.Message{Role: abi.RoleAssistant, Content: a.got.Content},
	}
	return out
}

// bill is what all requests cost together, or nil if no provider reported it.
func (a *ask) bill() *abi.Usage {
	total := a.total()
	if total == (abi.Usage{}) {
		return nil
	}
	return &total
}

func (a *ask) total() abi.Usage {
	total := a.usage
	AddUsage(&total, &a.got.usage)
	return total
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
