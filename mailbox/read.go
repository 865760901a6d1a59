package mailbox

import (
	"context"
	"time"
)

// Due lists threads for which there is something to do by a time, in the order in which processes come to them.
func (m *Mailbox) Due(ctx context.Context, by time.Time, limit int) ([]Thread, error) {
	due, _, err := m.due(ctx, dueQuery{By: by, Limit: limit})
	return due, err
}

// Image returns what the thread's executions committed as its image last.
func (m *Mailbox) Image(ctx context.Context, thread string) ([]byte, error) {
	_, image, err := m.imageOf(ctx, thread)
	return image, err
}
