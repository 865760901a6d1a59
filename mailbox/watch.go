package mailbox

import (
	"context"
	"time"
)

// watchPause is how long to wait after the store could not be watched.
const watchPause = 250 * time.Millisecond

// watch polls as soon as a process has made something due, this one too. What it misses, the next poll finds.
func (m *Mailbox) watch(ctx context.Context) {
	for ctx.Err() == nil {
		notifications, err := m.queue.Watch(ctx)
		if err != nil {
			m.warn(ctx, "mailbox_not_watching", err)
			wait(ctx, watchPause)
			continue
		}
		for range notifications {
			m.wake()
		}
	}
}
