package queue

import (
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/store"
)

// Errors for errors.Is. Package mailbox documents them.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("already exists")
	ErrConflict = errors.New("version conflict")
	ErrFull     = errors.New("queue is full")
	ErrInvalid  = errors.New("validation error")
	ErrTooLarge = errors.New("too large")
	ErrPaused   = errors.New("paused")
	ErrBusy     = errors.New("thread has an active run; cannot claim inline")
	// ErrUnknownOutcome is a change that may have been made: the store did not answer.
	ErrUnknownOutcome = store.ErrOutcomeUnknown
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
