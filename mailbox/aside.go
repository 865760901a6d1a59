package mailbox

import (
	"context"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

// maxAside is how many threads may be set aside at once. When more fail it is the store that does, not they.
const maxAside = 1000

// asides are the threads that failed, and are left alone for a while so that they do not keep the others back.
type asides struct {
	mu sync.Mutex
	of map[string]aside
}

// aside is one of them: how often it failed since it last went well, and until when it is left alone.
type aside struct {
	times int
	until time.Time
}

// count is how many there are. Those that failed long ago count no more.
func (a *asides) count(now time.Time, memory time.Duration) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	for thread, x := range a.of {
		if now.Sub(x.until) > memory {
			delete(a.of, thread)
		}
	}
	return len(a.of)
}

// until is the time before which a thread is left alone, or zero.
func (a *asides) until(thread string, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x := a.of[thread]; x.until.After(now) {
		return x.until
	}
	return time.Time{}
}

// put counts a failure of a thread, and returns how often it failed, and for how long it is left alone; 0 if there are too many of
// them.
func (a *asides) put(thread string, now time.Time, pause func(times int) time.Duration) (times int, left time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x, known := a.of[thread]
	if !known && len(a.of) >= maxAside {
		return 1, 0
	}
	if a.of == nil {
		a.of = map[string]aside{}
	}
	x.times++
	left = pause(x.times)
	x.until = now.Add(left)
	a.of[thread] = x
	return x.times, left
}

// well forgets the failures of a thread.
func (a *asides) well(thread string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, thread)
}

// setAside leaves a thread alone that failed, longer each time that it fails. It returns for how long; 0 if too many threads failed.
func (m *Mailbox) setAside(ctx context.Context, thread string, err error) time.Duration {
	times, pause := m.asides.put(thread, m.queue.Now(), func(times int) time.Duration {
		return doubled(m.cfg.Retry.Aside, m.cfg.Retry.MaxAside, times, 16)
	})
	if pause == 0 {
		return 0
	}
	m.event(ctx, queue.OpSetAside, thread, "", err)
	m.cfg.Logger.WarnContext(ctx, "mailbox_thread_set_aside", "thread", thread, "failures", times, "pause", pause, "error", err)
	return pause
}
