package llm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// saveEvery so many deltas a stream is kept.
const saveEvery = 4

// errStall is a stream that says nothing any more.
var errStall = errors.New("idle stall")

// infer asks a model that does not stream.
func (a *ask) infer(ctx context.Context, r Request) error {
	limit := time.Duration(a.cfg.Retry.RequestTimeoutSecs) * time.Second
	rctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var response *abi.Response
	done := start(func() (err error) {
		response, err = a.cfg.Model.Infer(rctx, r)
		return err
	})
	returned, err := a.await(rctx, done)
	switch {
	case !returned:
		err = &Error{Kind: KindTimeout, Model: r.Model, Message: fmt.Sprintf("no answer after %v", limit), Err: err}
	case err == nil && response == nil:
		err = errors.New("the model answered nothing")
	case err != nil && rctx.Err() != nil && ctx.Err() == nil:
		err = &Error{Kind: KindTimeout, Model: r.Model, Err: err}
	}
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("llm: %w", errors.Join(ctx.Err(), err))
	}
	if err != nil {
		return err
	}
	a.take(response)
	return nil
}

// take puts a whole response behind what had come before it.
func (a *ask) take(response *abi.Response) {
	a.whole = response
	for i := range response.Message.Content {
		b := response.Message.Content[i]
		if b.Type == abi.BlockText && len(a.suffix) > 0 {
			a.got.text(b.Type, b.Text)
			continue
		}
		a.got.Content = append(a.got.Content, b)
	}
	a.got.open = false
	AddUsage(&a.usage, response.Usage)
	a.got.stop, a.got.model = response.StopReason, response.Model
	a.calls = response.Message.ToolCalls
}

// start runs do on a goroutine of its own, whatever it does.
func start(do func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		err := fmt.Errorf("%w: it ended its goroutine", ErrPanic)
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%w: %.512v", ErrPanic, p)
			}
			done <- err
		}()
		err = do()
	}()
	return done
}

// await waits for a request, and for the grace time once its context is done. It
// reports whether the request returned.
func (a *ask) await(ctx context.Context, done <-chan error) (returned bool, err error) {
	select {
	case err := <-done:
		return true, err
	case <-ctx.Done():
	}
	return a.afterGrace(ctx, done)
}

func (a *ask) afterGrace(ctx context.Context, done <-chan error) (returned bool, err error) {
	grace := time.NewTimer(a.cfg.Grace)
	defer grace.Stop()
	select {
	case err := <-done:
		return true, err
	case <-grace.C:
		a.cfg.Logger.WarnContext(ctx, "model ignores its context and is left behind", "run_id", a.req.RunID, "grace", a.cfg.Grace)
		return false, context.Cause(ctx)
	}
}

// stream asks a model that streams. The answer is broken when it ended after it had
// begun.
func (a *ask) stream(ctx context.Context, s Streamer, r Request) (broken bool, err error) {
	sctx, cancel := context.WithCancel(ctx)
	defer cancel()
	deltas, quit := make(chan Delta), make(chan struct{})
	done := start(func() error {
		return s.Stream(sctx, r, func(d Delta) bool {
			select {
			case deltas <- d:
				return true
			case <-quit:
				return false
			}
		})
	})
	begun, returned, err := a.read(ctx, r, deltas, done)
	close(quit)
	cancel()
	if !returned {
		_, _ = a.afterGrace(ctx, done) // Why it is given up is known.
	}
	if ctx.Err() != nil && err != nil {
		return begun, fmt.Errorf("llm: %w", ctx.Err())
	}
	failure, known := errors.AsType[*Error](err)
	return errors.Is(err, errStall) || begun && known && failure.Retryable(), err
}

// read takes deltas until the stream is over. It reports whether any content came, and
// whether the stream has returned.
func (a *ask) read(ctx context.Context, r Request, deltas <-chan Delta, done <-chan error) (begun, returned bool, err error) {
	limit := a.cfg.Retry.idle(&r)
	idle := time.NewTimer(limit)
	defer idle.Stop()
	for {
		select {
		case d := <-deltas:
			idle.Reset(limit)
			if !begun && d.Type != DeltaUsage && d.Type != DeltaStop {
				begun, a.first = true, time.Now()
			}
			if err := a.delta(ctx, &d); err != nil {
				return begun, false, err
			}
		case err := <-done:
			if err == nil {
				a.got.end()
				a.settle()
			}
			return begun, true, err
		case <-idle.C:
			return begun, false, &Error{Kind: KindStreamInterrupted, Model: r.Model, Message: fmt.Sprintf("nothing came for %v", limit), Err: errStall}
		case <-ctx.Done():
			return begun, false, ctx.Err()
		}
	}
}

// delta takes one delta and passes on what concerns a listener.
func (a *ask) delta(ctx context.Context, d *Delta) error {
	if err := a.got.add(d); err != nil {
		return err
	}
	switch d.Type {
	case DeltaText, DeltaReasoning, DeltaCallStart:
		a.listen(*d)
	case DeltaCallArguments:
		if c := a.got.call(d.CallID); c != nil {
			d.CallID, d.Name = c.ID, c.Name
			a.listen(*d)
		}
	default:
	}
	a.deltas++
	if a.deltas%saveEvery == 0 {
		a.save(ctx)
	}
	return nil
}
