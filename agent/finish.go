package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

// finish is the one exit of a run. Nothing in it may keep the thread busy.
func (r *run) finish(ctx context.Context, stop *Termination, err error) (Result, error) {
	end, err := r.ended(ctx, stop, err)
	asked := ctx
	continued := err != nil && errors.Is(context.Cause(ctx), ErrContinued)
	if continued {
		end.Code = Continued
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Grace)
	defer cancel()
	ending := r.ending(end, err)
	last := errors.Join(
		recovered(func() error { r.settle(); _, err := r.compacted(ctx); return err }),
		recovered(func() error { _, _, err := r.fire(ctx, abi.RunEnd, frame{end: ending}); return err }),
	)
	if end.deliberate(asked) {
		r.read()
	}
	if last == nil {
		last = r.close(ctx, end, continued)
	} else {
		// It failed, and that is persisted too.
		failed := Termination{Type: Failed, Detail: last.Error()}
		last = errors.Join(last, r.close(ctx, failed, continued))
	}
	if last != nil {
		last = fmt.Errorf("agent: run %s: %w", r.id.RunID, last)
		if err == nil {
			end = Termination{Type: Failed, Detail: last.Error()}
			r.over(end)
		}
		err = errors.Join(err, last)
	}
	r.giveBack()
	result := Result{
		RunID: r.id.RunID, Response: r.record.Final, Termination: end, Steps: r.step, Usage: r.record.Usage,
		Status: r.record.Status, StatusReason: r.record.Reason,
	}
	if w := r.record.Waiting; w != nil {
		result.Tickets, result.Wait = w.Tickets, w.Reason
	}
	r.showMessages(ctx)
	r.showState(ctx)
	if r.shown.stop != nil {
		r.shown.stop()
	}
	outcome := result
	r.send(ctx, Event{Type: EventRunFinish, Outcome: &outcome})
	return result, err
}

// ended turns what ended the loop into a termination. A run that was done before
// its context ended is done.
func (r *run) ended(ctx context.Context, stop *Termination, err error) (Termination, error) {
	switch {
	case err == nil && stop != nil:
		return *stop, nil
	case ctx.Err() != nil:
		return Termination{Type: Cancelled, Detail: context.Cause(ctx).Error()}, fmt.Errorf("agent: run %s: %w", r.id.RunID, ctx.Err())
	default:
		return Termination{Type: Failed, Detail: err.Error()}, fmt.Errorf("agent: run %s: %w", r.id.RunID, err)
	}
}

// maxEndText bounds what plugins read of an error, in bytes.
const maxEndText = 4 << 10

// ending is what plugins learn of the end of the run.
func (r *run) ending(end Termination, err error) *abi.RunEnding {
	out := &abi.RunEnding{
		Termination: abi.TerminationType(end.Type), Code: end.Code, Detail: clip(end.Detail, maxEndText), Steps: r.step, Cost: r.record.Cost,
		DurationMS: r.active().Milliseconds(),
	}
	if err != nil {
		out.Error = clip(err.Error(), maxEndText)
	}
	if end.Type == NaturalEnd && r.tasks {
		out.Detail = awaitingTasks
	}
	if r.record.Usage != (abi.Usage{}) {
		usage := r.record.Usage
		out.Usage = &usage
	}
	return out
}

// over writes into the record how the activation ended: the run waits, or is done.
func (r *run) over(end Termination) {
	r.record.Termination, r.record.Waiting = end, nil
	r.record.Final, r.record.Error = r.thread.text(r.last), ""
	switch {
	case end.Type == Suspended:
		r.wait(waitOfAll(r.thread.openTickets()), suspendedText)
	case end.Type == NaturalEnd && r.tasks:
		r.wait(WaitTasks, awaitingTasks)
	default:
		r.record.move(StatusDone, end.Reason())
		if end.Type == Failed {
			r.record.Error = end.Detail
		}
	}
}

func (r *run) wait(reason WaitReason, text string) {
	r.record.move(StatusWaiting, text)
	r.record.Waiting = &Waiting{
		Reason: reason, Tickets: r.thread.openTickets(), DispatchID: r.record.DispatchID, Since: r.cfg.Now(), Message: text,
	}
}

// close makes the end durable. If another process continues the run, calls still wait for their decision, and a step whose answer was cut off
// does not count: it is taken again.
func (r *run) close(ctx context.Context, end Termination, continued bool) error {
	r.over(end)
	if !continued {
		r.record.Steps = r.step
		if r.record.Status == StatusDone {
			r.supersede(ctx, "the run ended: "+end.Reason())
		}
	}
	r.record.Active = r.active()
	r.record.Output = [2]int{r.first, r.thread.size()}
	if input := r.record.Input; input[0] >= r.first && input[1] <= r.record.Output[1] && input[1] > input[0] {
		r.record.Output[0] = input[1]
	}
	r.thread.keep(r.state.Export(), StateImage(r.state.Store().Export()))
	return r.checkpoint(ctx, nil)
}
