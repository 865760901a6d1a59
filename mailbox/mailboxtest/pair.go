package mailboxtest

import (
	"context"
	"sync/atomic"

	"github.com/mortise-dev/mortise/mailbox"
)

// pair is two stores that take turns.
type pair struct {
	mailbox.Store

	other mailbox.Store
	count atomic.Int64
}

// InTurns is two stores on the same data that take turns, by threes, as processes do: what one
// remembers, the other has changed.
func InTurns(one, other mailbox.Store) mailbox.Store { return &pair{Store: one, other: other} }

func (p *pair) turn() mailbox.Store {
	if p.count.Add(1)%6 < 3 {
		return p.Store
	}
	return p.other
}

func (p *pair) Update(ctx context.Context, thread string, need mailbox.Need, decide func(mailbox.State) (mailbox.Change, error)) error {
	return p.turn().Update(ctx, thread, need, decide)
}

func (p *pair) Load(ctx context.Context, thread string, need mailbox.Need) (mailbox.State, error) {
	return p.turn().Load(ctx, thread, need)
}
