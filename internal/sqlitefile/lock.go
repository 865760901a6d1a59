package sqlitefile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Pauses between two attempts to lock a file while another process has it, or another connection of this one. LastPause is for attempts that
// cost little. The attempts are not left to SQLite's busy_timeout, which sleeps for up to 100 ms and does not know the context.
const (
	firstPause = 100 * time.Microsecond
	LastPause  = time.Millisecond
)

// Code returns the extended result code of an error of SQLite, or 0.
func Code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// locked reports whether another process or connection has the lock.
func locked(err error) bool {
	primary := Code(err) & 0xff
	return primary == sqlite3.SQLITE_BUSY || primary == sqlite3.SQLITE_LOCKED
}

// Retry calls run until the file is not locked, or ctx is done. The pauses between its calls grow up to about longest.
func Retry(ctx context.Context, longest time.Duration, run func() error) error {
	for pause := firstPause; ; pause = min(2*pause, longest) {
		err := run()
		if !locked(err) {
			return err
		}
		timer := time.NewTimer(pause/2 + rand.N(pause)) //nolint:gosec // not a secret
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w, while another process or connection has the lock: %w", context.Cause(ctx), err)
		}
	}
}
