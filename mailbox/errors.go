package mailbox

import (
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/store"
)

// Errors for errors.Is.
var (
	// ErrNotFound is an id that is not there.
	ErrNotFound = errors.New("not found")
	// ErrExists is an id or a dedupe key that is taken.
	ErrExists = errors.New("already exists")
	// ErrConflict is a claim that was lost: its token is not that of the thread any more, or the thread has a later epoch; or a log that
	// has another length than the commit follows.
	ErrConflict = errors.New("version conflict")
	// ErrFull is a thread, or a tenant, that has as many dispatches as it may have.
	ErrFull = errors.New("queue is full")
	// ErrInvalid is input that no state could accept.
	ErrInvalid = errors.New("validation error")
	// ErrTooLarge is an [ErrInvalid] that has more bytes than it may have: see [Limits].
	ErrTooLarge = errors.New("too large")
	// ErrPaused is a foreground request for a thread that an operator paused, or whose tenant or mailbox is paused.
	ErrPaused = errors.New("paused")
	// ErrBusy is a thread that has a run which does not yield.
	ErrBusy = errors.New("thread has an active run; cannot claim inline")
	// ErrUnknownOutcome is a change that may have been made: the store did not answer to it. Repeat it with the same ids.
	ErrUnknownOutcome = store.ErrOutcomeUnknown
	// ErrRefused is a request that does not fit where its run stands, such as a decision about a call that does not wait. A [Runtime]
	// returns it with the result as the run stands: the dispatch is acknowledged, has it in LastError, and the run continues as it was.
	ErrRefused = errors.New("refused")
	// ErrDecided is an [ErrRefused] of decisions about a call that has one already, whether its run waits or is under way.
	ErrDecided = fmt.Errorf("%w: it was decided before", ErrRefused)
	// ErrPermanent marks an error that no retry fixes.
	ErrPermanent = errors.New("permanent failure")
)

// conflictError is an [ErrConflict] with what was compared: epochs, lengths, or
// 0 and 1 for a token that is not the right one.
type conflictError struct{ expected, actual uint64 }

func (e *conflictError) Error() string {
	return fmt.Sprintf("version conflict: expected %d, actual %d", e.expected, e.actual)
}

// Is makes it an [ErrConflict].
func (e *conflictError) Is(target error) bool { return target == ErrConflict }

func wrongToken() error { return &conflictError{expected: 0, actual: 1} }

// Causes for which the context of an execution ends.
var (
	// ErrStopped is an execution that was cancelled or interrupted.
	ErrStopped = errors.New("stopped")
	// ErrLeaseLost is one that does not hold its thread any more.
	ErrLeaseLost = errors.New("the lease was lost")
	// ErrShutdown is one whose mailbox closes; another process will execute the dispatch. It is also a request to a mailbox that is closed.
	ErrShutdown = errors.New("the mailbox is closing")
	// ErrTimeout is one that took longer than Request.Timeout. It counts as failed, unless it comes to a result all the same.
	ErrTimeout = errors.New("the execution took longer than its request allows")
)

func wrap(what, id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mailbox: %s %.80q: %w", what, id, err)
}
