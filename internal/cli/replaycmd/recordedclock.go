package replaycmd

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// recordedClock is an admission policy that sees the time of a recording, as hours of it pass in a second. Where the
// recording has no times there is no cooldown. Deadlines of the summarizer remain those of the process.
type recordedClock struct {
	policy compaction.Admitter // compaction.Cost when nil
	now    func() time.Time

	mu             sync.Mutex
	begun, failed  time.Time
	failuresBefore int64
}

// backoff is how long the recording's clock waits after failures in a row: as long as the process would.
func backoff(failures int64) time.Duration {
	return min(time.Second<<min(max(failures-1, 0), 16), 5*time.Minute)
}

// Admit implements compaction.Admitter. It changes the request, which then shows what was decided on.
func (c *recordedClock) Admit(ctx context.Context, r *abi.AdmitRequest) (*abi.Decision, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if r.Failures > c.failuresBefore {
		c.failed = now
	}
	c.failuresBefore = r.Failures
	left := func(since time.Time, wait time.Duration) int64 {
		if since.IsZero() {
			return 0
		}
		return max(0, since.Add(wait).Sub(now).Milliseconds())
	}
	r.LastStartMS, r.BackoffRemainingMS = 0, 0
	if r.Failures > 0 {
		r.BackoffRemainingMS = left(c.failed, backoff(r.Failures))
	}
	r.CooldownRemainingMS = max(left(c.begun, time.Duration(r.CooldownMS)*time.Millisecond), r.BackoffRemainingMS)
	if !now.IsZero() {
		r.NowMS = now.UnixMilli()
	}
	if !c.begun.IsZero() {
		r.LastStartMS = c.begun.UnixMilli()
	}
	d, err := cmp.Or[compaction.Admitter](c.policy, compaction.Cost{}).Admit(ctx, r)
	if err != nil || d == nil {
		return d, err
	}
	out := *d
	out.RetryAfterMS = 0 // it would be waited for by the process's clock
	if out.Allowed {
		c.begun = now
	}
	return &out, nil
}
