package mailbox

import (
	"context"
	"errors"
)

// Observer receives what a mailbox does: package mailboxmetrics counts it, mailboxtrace makes spans of it. Its methods are called from many
// goroutines, and are quick.
type Observer interface {
	// Operation is called when a transition or a read of the store begins, and end when it is over. Result is ok, error, empty if there
	// was nothing to do, or lost if the process does not hold the thread any more. The operation gets the returned context.
	Operation(ctx context.Context, o Operation) (_ context.Context, end func(result string, err error))
	// Execution is called when a run begins in this process, and end when it has ended. The run gets the returned context.
	Execution(ctx context.Context, j *Job) (_ context.Context, end func(Outcome, error))
	// Settled is called after this process made a dispatch terminal, once for each.
	Settled(ctx context.Context, d Dispatch, r Run)
}

// observed passes an execution to the observers.
func (m *Mailbox) observed(ctx context.Context, j *Job) (_ context.Context, end func(Outcome, error)) {
	ends := make([]func(Outcome, error), len(m.cfg.Observers))
	for i, observer := range m.cfg.Observers {
		ctx, ends[i] = observer.Execution(ctx, j) //nolint:fatcontext // each observer adds its own
	}
	return ctx, func(o Outcome, err error) {
		for _, end := range ends {
			end(o, err)
		}
	}
}

// event passes something to the observers that is no operation on the store.
func (m *Mailbox) event(ctx context.Context, name, thread, dispatch string, err error) {
	_, end := m.observe(ctx, Operation{Name: name, Thread: thread, Dispatch: dispatch})
	end(false, err)
}

// Outcome is how an execution, or a dispatch that is terminal, came out, as metrics name it: completed, transient_error, permanent_error,
// superseded, cancelled or dead_letter.
type Outcome string

const (
	outcomeCompleted      Outcome = "completed"
	outcomeTransientError Outcome = "transient_error"
	outcomePermanentError Outcome = "permanent_error"
	outcomeSuperseded     Outcome = "superseded"
	outcomeCancelled      Outcome = "cancelled"
	outcomeDeadLetter     Outcome = "dead_letter"
)

// Outcome returns how a dispatch came out, or the empty string while it is not terminal.
func (d *Dispatch) Outcome() Outcome {
	switch d.Status {
	case Acked:
		return outcomeCompleted
	case Cancelled:
		return outcomeCancelled
	case Superseded:
		return outcomeSuperseded
	case DeadLetter:
		return outcomeDeadLetter
	default:
		return ""
	}
}

// outcomeBy is how an execution came out that is settled so.
func outcomeBy(v verdict, err error) Outcome {
	switch v {
	case verdictWithdraw:
		return outcomeCancelled
	case verdictSupersede:
		return outcomeSuperseded
	default:
		return Classify(err)
	}
}

// Operation is one that begins. Thread and Dispatch are set as far as they are known.
type Operation struct {
	// Name is as in metrics: enqueue, claim, lease_renewal, commit, ack, nack, ... A few are not asked for: steer hands a command to a run
	// under way, abandon leaves an execution that did not end when the mailbox was closed, set_aside leaves a thread that failed alone for
	// a while.
	Name             string
	Thread, Dispatch string
}

// observe passes an operation to the observers, and end its result: empty when there was nothing to do.
func (q *queue) observe(ctx context.Context, o Operation) (_ context.Context, end func(empty bool, err error)) {
	_ = q.clock.sync(ctx) // what needs the time fails by itself if there is none
	if len(q.observers) == 0 {
		return ctx, func(bool, error) {}
	}
	ends := make([]func(string, error), len(q.observers))
	for i, observer := range q.observers {
		ctx, ends[i] = observer.Operation(ctx, o) //nolint:fatcontext // each observer adds its own
	}
	return ctx, func(empty bool, err error) {
		result := "ok"
		switch {
		case errors.Is(err, ErrConflict):
			result = "lost" // by a process that does not hold the thread any more
		case err != nil:
			result = "error"
		case empty:
			result = "empty" // it found nothing to do
		}
		for _, end := range ends {
			end(result, err)
		}
	}
}

// reportEnds passes what a turn made terminal to the observers.
func (q *queue) reportEnds(ctx context.Context, t *turn) {
	for _, id := range t.ends {
		s := t.state(id)
		for _, observer := range q.observers {
			observer.Settled(ctx, s.Dispatch, s.Run)
		}
	}
}
