package sqlitestore_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
)

// pair is two stores on one file that take turns, by threes, as processes do: what one
// remembers, the other has changed.
type pair struct {
	mailbox.Store
	other mailbox.Store
	count atomic.Int64
}

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

func TestStore_modelOfTwo(t *testing.T) {
	t.Parallel()
	mailboxtest.TestModel(t, func(t *testing.T) mailbox.Store {
		t.Helper()
		path := filepath.Join(t.TempDir(), "mailbox.db")
		return &pair{Store: open(t, path), other: open(t, path)}
	}, 60)
}
