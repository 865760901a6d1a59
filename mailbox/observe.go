package mailbox

import (
	"context"
	"errors"
)

// Observer is told what a mailbox does: package mailboxmetrics counts it, mailboxtrace
// makes spans of it. Its methods are called from many goroutines, and are quick.
type Observer interface {
	// Operation is called when a transition or a look at the store begins, and end when it
	// is over. What the operation does gets the context that comes back.
	Operation(ctx context.Context, o Operation) (_ context.Context, end func(OperationResult, error))
	// Execution is called when a run begins in this process, and end when it has ended. The run gets
	// the context that comes back.
	Execution(ctx context.Context, j *Job) (_ context.Context, end func(Outcome, error))
	// Settled is called after this process made a dispatch terminal, once for each.
	Settled(ctx context.Context, k Taken)
	// Signal is called for each signal that came, and for what it was answered with.
	Signal(ctx context.Context, e SignalEvent)
}

// OperationName names an operation, as metrics do.
type OperationName string

// Operations. Those from OpAck to OpSupersede settle a claim.
const (
	OpEnqueue       OperationName = "enqueue"
	OpClaim         OperationName = "claim"
	OpClaimDispatch OperationName = "claim_dispatch"
	OpRenew         OperationName = "lease_renewal"
	OpCommit        OperationName = "commit"
	OpAck           OperationName = "ack"
	OpNack          OperationName = "nack"
	OpDeadLetter    OperationName = "dead_letter"
	OpRelease       OperationName = "release"
	OpWithdraw      OperationName = "cancel_claimed"
	OpSupersede     OperationName = "supersede_claimed"
	OpInterrupt     OperationName = "interrupt"
	OpCancel        OperationName = "cancel"
	OpCancelRun     OperationName = "cancel_run"
	OpReclaim       OperationName = "reclaim_dispatch"
	OpLapse         OperationName = "lapse"
	OpReplay        OperationName = "replay"
	OpDiscard       OperationName = "discard"
	OpDrop          OperationName = "drop_thread"
	OpDescribe      OperationName = "describe_thread"
	OpLoadDispatch  OperationName = "load_dispatch"
	OpLoadThread    OperationName = "load_thread"
	OpDue           OperationName = "due"
	OpClaims        OperationName = "count_claims"
	OpPurge         OperationName = "purge_terminal"
	OpLive          OperationName = "live_delivery"
	OpSignalPull    OperationName = "signal_pull"
	OpSignalAck     OperationName = "signal_ack"
	OpSignalNack    OperationName = "signal_nack"
	// OpSteer hands a command to a run under way. It is empty when the run refused it.
	OpSteer OperationName = "steer"
	// OpAbandon is not asked for: an execution went on when the Mailbox was closed.
	OpAbandon OperationName = "abandon"
	// OpSetAside is not asked for: a thread failed, and is left alone for a while.
	OpSetAside OperationName = "set_aside"
)

// Operation is one that begins. Thread and Dispatch are set as far as they are known.
type Operation struct {
	Name             OperationName
	Thread, Dispatch string
}

// OperationResult is how an operation came out.
type OperationResult string

// Results of operations.
const (
	ResultOK    OperationResult = "ok"
	ResultError OperationResult = "error"
	// ResultEmpty found nothing to do.
	ResultEmpty OperationResult = "empty"
	// ResultLost is an operation of somebody who does not hold the thread any more.
	ResultLost OperationResult = "lost"
)

// SignalEvent is what happens to a signal.
type SignalEvent string

// What happens to signals. A nack that is delayed is one of a thread that is claimed.
const (
	SignalPulled      SignalEvent = "pulled"
	SignalRedelivered SignalEvent = "redelivery"
	SignalAcked       SignalEvent = "ack"
	SignalNacked      SignalEvent = "nack"
	SignalDelayed     SignalEvent = "nack_delayed"
)

// operation is what metrics call a settlement.
func (v Verdict) operation() OperationName {
	switch v {
	case Ack:
		return OpAck
	case Retry:
		return OpNack
	case Bury:
		return OpDeadLetter
	case GiveBack:
		return OpRelease
	case Withdraw:
		return OpWithdraw
	default:
		return OpSupersede
	}
}

// outcome is how a dispatch came out that is terminal.
func (s Status) outcome() Outcome {
	switch s {
	case Cancelled:
		return OutcomeCancelled
	case Superseded:
		return OutcomeSuperseded
	case DeadLetter:
		return OutcomeDeadLetter
	default:
		return OutcomeCompleted
	}
}

// Outcome is how a dispatch came out, or the empty string while it is not terminal.
func (d Dispatch) Outcome() Outcome {
	if !d.Status.Terminal() {
		return ""
	}
	return d.Status.outcome()
}

func operationResult(empty bool, err error) OperationResult {
	switch {
	case errors.Is(err, ErrConflict):
		return ResultLost
	case err != nil:
		return ResultError
	case empty:
		return ResultEmpty
	default:
		return ResultOK
	}
}

// begin tells observers of an operation. End tells them how it came out: empty when there
// was nothing to do.
func (q *Queue) begin(ctx context.Context, o Operation) (_ context.Context, end func(empty bool, err error)) {
	_ = q.clock.sync(ctx) // what goes by the time fails by itself if there is none
	if len(q.cfg.Observers) == 0 {
		return ctx, func(bool, error) {}
	}
	ends := make([]func(OperationResult, error), len(q.cfg.Observers))
	for i, observer := range q.cfg.Observers {
		ctx, ends[i] = observer.Operation(ctx, o) //nolint:fatcontext // each observer adds its own
	}
	return ctx, func(empty bool, err error) {
		for _, end := range ends {
			end(operationResult(empty, err), err)
		}
	}
}

// ended tells observers of what a turn made terminal.
func (q *Queue) ended(ctx context.Context, t *turn) {
	if t == nil || len(q.cfg.Observers) == 0 {
		return
	}
	for _, id := range t.ends {
		for _, observer := range q.cfg.Observers {
			observer.Settled(ctx, t.taken(id))
		}
	}
}

// observed tells observers of an execution.
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
