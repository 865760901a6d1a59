package mailbox

import (
	"context"
	"errors"
)

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
