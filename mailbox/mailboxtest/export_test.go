package mailboxtest

import (
	"context"

	"github.com/mortise-dev/mortise/mailbox"
)

// Trouble plays so many schedules on a store, and says what is wrong.
func Trouble(ctx context.Context, store mailbox.Store, schedules uint64) string {
	s := &share{store: store, end: schedules, taken: &takings{of: map[action]int{}}}
	return s.play(ctx, false)
}
