package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Attempts of [ApplySurely] and [Update], and the pause before the second one, which doubles.
const (
	sureAttempts   = 4
	surePause      = 20 * time.Millisecond
	updateAttempts = 100
)

// ErrOutcomeUnknown is an error of [ApplySurely]: the batch may have been applied.
var ErrOutcomeUnknown = errors.New("outcome unknown")

// NotApplied marks an error of Apply after which a store knows that it has changed nothing, and never will: it was not reached, or it
// refused.
func NotApplied(err error) error { return notAppliedError{err} }

type notAppliedError struct{ error }

func (n notAppliedError) Unwrap() error { return n.error }

// certain reports whether nothing was changed, by an error of Apply.
func certain(err error) bool {
	return errors.Is(err, ErrConflict) || errors.Is(err, ErrExists) || errors.Is(err, ErrInvalid)
}

// ApplySurely applies a batch and repeats it when the store fails, so that the outcome is known if the store comes back soon. A batch
// without an ID gets one.
func ApplySurely(ctx context.Context, s Store, b Batch) (uint64, error) {
	if b.ID == "" {
		b.ID = uuid.NewString()
	}
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	var failed error
	known := true
	for attempt := range sureAttempts {
		revision, err := s.Apply(ctx, b)
		if err == nil || certain(err) && known {
			return revision, err
		}
		if certain(err) { // a batch that dropped its thread is not remembered
			return 0, fmt.Errorf("store: thread %.80q: %w: %w, after %w", b.Thread, ErrOutcomeUnknown, err, failed)
		}
		failed, known = err, known && errors.As(err, new(notAppliedError))
		timer := time.NewTimer(surePause << attempt)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			failed = errors.Join(failed, context.Cause(ctx))
			if known {
				return 0, failed
			}
			return 0, fmt.Errorf("store: thread %.80q: %w: %w", b.Thread, ErrOutcomeUnknown, failed)
		}
	}
	if known {
		return 0, failed
	}
	return 0, fmt.Errorf("store: thread %.80q: %w: %w", b.Thread, ErrOutcomeUnknown, failed)
}

// Update reads part of a thread, asks change for a batch and applies it, until no other batch has come between. Thread, Base and, if empty,
// ID of the batch are set by Update. An error of change is returned as it is. A nil batch changes nothing.
func Update(ctx context.Context, s Store, thread string, q Query, change func(Snapshot) (*Batch, error)) (uint64, error) {
	for range updateAttempts {
		snapshot, err := s.Read(ctx, thread, q)
		if err != nil {
			return 0, err
		}
		b, err := change(snapshot)
		if err != nil || b == nil {
			return snapshot.Revision, err
		}
		b.Thread, b.Base = thread, snapshot.Revision
		revision, err := ApplySurely(ctx, s, *b)
		if !errors.Is(err, ErrConflict) || errors.Is(err, ErrOutcomeUnknown) {
			return revision, err
		}
	}
	return 0, fmt.Errorf("store: thread %.80q: %w after %d attempts", thread, ErrConflict, updateAttempts)
}
