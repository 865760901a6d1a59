package mailbox

import (
	"errors"
	"fmt"
)

// Errors for errors.Is.
var (
	// ErrNotFound is an id that is not there.
	ErrNotFound = errors.New("not found")
	// ErrExists is an id or a dedupe key that is taken.
	ErrExists = errors.New("already exists")
	// ErrConflict is a claim that was lost: its token is not that of the thread any more, or the
	// thread has a later epoch; or a log that has another length than was said.
	ErrConflict = errors.New("version conflict")
	// ErrFull is a thread, or a tenant, that has as many dispatches as it may have.
	ErrFull = errors.New("queue is full")
	// ErrInvalid is input that no state could accept.
	ErrInvalid = errors.New("validation error")
	// ErrTooLarge is an [ErrInvalid] that has more bytes than it may have: see [QueueConfig].
	ErrTooLarge = errors.New("too large")
	// ErrBusy is a thread that has a run which does not give way.
	ErrBusy = errors.New("thread has an active run; cannot claim inline")
	// ErrRefused is a request that does not fit where its run stands, such as a decision that nobody waits for. A [Runtime] returns it
	// with the result as the run stands: the dispatch is acknowledged, says why in LastError, and the run goes on as it was.
	ErrRefused = errors.New("refused")
	// ErrUnknownOutcome is a transition of which nobody can say whether it was made.
	ErrUnknownOutcome = errors.New("commit outcome unknown")
)

// ConflictError is an [ErrConflict] with what was compared: epochs, lengths, or
// 0 and 1 for a token that is not the right one.
type ConflictError struct{ Expected, Actual uint64 }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("version conflict: expected %d, actual %d", e.Expected, e.Actual)
}

// Is makes it an [ErrConflict].
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

func wrongToken() error { return &ConflictError{Expected: 0, Actual: 1} }

func wrap(what, id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mailbox: %s %.80q: %w", what, id, err)
}
