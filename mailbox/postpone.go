package mailbox

import (
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

// Reasons of runs that wait for a time, or for an operator. Their dispatch is still queued.
const (
	WaitRate  = queue.WaitRate
	WaitPause = queue.WaitPause
)

// postponed is an error with the time of the next execution.
type postponed struct {
	at     time.Time
	wait   string
	counts bool
	cause  error
}

func (p *postponed) Error() string {
	return fmt.Sprintf("%v; the next attempt is at %s", p.cause, p.at.UTC().Format(time.RFC3339))
}

func (p *postponed) Unwrap() error { return p.cause }

// RetryAt is for a [Runtime]: it returns an error with which an execution fails, and is tried again at that time and not after
// [Retry].Delay. It counts as an attempt.
func RetryAt(at time.Time, cause error) error { return &postponed{at: at, counts: true, cause: cause} }

// Postpone is for a [Runtime]: it returns an error with which an execution ends that cannot be made before a time, as when a provider has a
// rate limit. In a mailbox that was never started it counts as failed. Else it costs no attempt, up to 100 times in a row, and the dispatch keeps its place. The run waits until then, for reason:
// [WaitRate] if it is empty.
func Postpone(at time.Time, reason string, cause error) error {
	return &postponed{at: at, wait: reason, cause: cause}
}
