package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"modernc.org/sqlite"
)

// Codes of SQLite. The low byte of a code says what it is.
const (
	codeBusy       = 5
	codeLocked     = 6
	codeConstraint = 19
)

// How long to wait before another try when somebody else has locked the file, at first and
// at most. The wait is done here and not by SQLite, because there it ignores the context.
const (
	firstWait = 100 * time.Microsecond
	lastWait  = time.Millisecond
)

// code is that of an error of SQLite, or 0.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

func inTheWay(err error) bool { return code(err) == codeBusy || code(err) == codeLocked }

// IsConstraint says whether a statement was refused because of a key or another
// constraint of a table.
func IsConstraint(err error) bool { return code(err) == codeConstraint }

// retry tries again for as long as somebody else is in the way, until ctx ends.
func retry(ctx context.Context, run func() error) error {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := run()
		if err == nil || !inTheWay(err) {
			return err
		}
		if !pause(ctx, wait/2+rand.N(wait)) { //nolint:gosec // not a secret
			return context.Cause(ctx)
		}
	}
}

// pause waits, and says whether ctx is still there.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
