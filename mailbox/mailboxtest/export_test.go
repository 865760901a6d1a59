package mailboxtest

import (
	"context"

	"github.com/mortise-dev/mortise/store"
)

// Trouble plays so many schedules on a store, and returns what is wrong.
func Trouble(ctx context.Context, s store.Store, schedules uint64) string {
	sh := &share{one: s, other: s, end: schedules, taken: &takings{of: map[action]int{}}}
	return sh.play(ctx, false)
}
