package phases

import (
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// health counts the failures of a hook for quarantine.
type health struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

// quarantined reports whether the hook is to be skipped, and until when.
func (h *hook) quarantined(now func() time.Time) (time.Time, bool) {
	if h.OnFailure != abi.FailQuarantine {
		return time.Time{}, false
	}
	h.health.mu.Lock()
	defer h.health.mu.Unlock()
	if h.health.until.IsZero() {
		return time.Time{}, false
	}
	return h.health.until, now().Before(h.health.until)
}

// succeeded ends a row of failures.
func (h *hook) succeeded() {
	if h.OnFailure != abi.FailQuarantine {
		return
	}
	h.health.mu.Lock()
	defer h.health.mu.Unlock()
	h.health.failures, h.health.until = 0, time.Time{}
}

// failed counts a failure and reports whether the hook is now in quarantine. After
// a quarantine one failure is enough for the next, which is twice as long.
func (h *hook) failed(l *Limits, now time.Time) bool {
	if h.OnFailure != abi.FailQuarantine {
		return false
	}
	h.health.mu.Lock()
	defer h.health.mu.Unlock()
	h.health.failures++
	over := h.health.failures - l.QuarantineAfter
	if over < 0 {
		return false
	}
	wait := l.QuarantineMax
	if over < 32 && l.QuarantineBackOff<<over>>over == l.QuarantineBackOff {
		wait = min(wait, l.QuarantineBackOff<<over)
	}
	h.health.until = now.Add(wait)
	return true
}
