package mailbox

import (
	"context"
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
