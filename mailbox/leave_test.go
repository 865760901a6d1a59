package mailbox_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// TestWhoAskedGoesAway holds that a process knows the claim that it made, also when the caller goes away in the middle of it, or
// the mailbox stops: else the thread would be held, and not executed, until its lease is over.
func TestWhoAskedGoesAway(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"in_the_background": func(t *testing.T) {
			goesAway(t, 1, func(ctx context.Context, m *mailbox.Mailbox) { _, _ = m.SubmitBackground(ctx, request("t", "x")) })
		},
		"in_the_foreground": func(t *testing.T) {
			goesAway(t, 2, func(ctx context.Context, m *mailbox.Mailbox) { _, _ = m.Submit(ctx, request("t", "x")) })
		},
		"the_mailbox_closes": leftByClose,
	})
}

// leaving is a store that answers a write with the error of its context, if that has ended meanwhile: it was made all the same. It
// calls hook during one of them.
type leaving struct {
	store.Store

	mu   sync.Mutex
	left int
	hook func()
}

func (l *leaving) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	l.mu.Lock()
	l.left--
	if l.left == 0 {
		l.hook()
	}
	l.mu.Unlock()
	revision, err := l.Store.Apply(context.WithoutCancel(ctx), b)
	if err != nil {
		return 0, err
	}
	return revision, context.Cause(ctx)
}

func goesAway(t *testing.T, update int, submit func(context.Context, *mailbox.Mailbox)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	mem := &leaving{Store: plain{memstore.New()}, left: update, hook: cancel}
	s := &script{}
	m := started(t, mailbox.Config{Runtime: s, Store: mem})
	submit(ctx, m)
	if ctx.Err() == nil {
		t.Fatal("no caller went away")
	}
	sleep(time.Second)
	s.wantRan(t, "x")
	list, err := memList(t, m, "t")
	must(t, err)
	equal(t, "dispatches", len(list), 1)
	equal(t, "status", list[0].Status, mailbox.Acked)
	equal(t, "attempts", list[0].Attempts, 0)
}

func leftByClose(t *testing.T) {
	mem := &leaving{Store: plain{memstore.New()}}
	s := &script{}
	m := started(t, mailbox.Config{Runtime: s, Store: mem})
	former := open(t, mailbox.Config{Runtime: s, Store: mem})
	sub := queued(t, former, request("t", "x"))
	over := make(chan error, 1)
	closing := make(chan struct{})
	mem.mu.Lock()
	mem.left, mem.hook = 1, func() {
		go func() {
			close(closing)
			over <- m.Close(context.Background())
		}()
		<-closing
		time.Sleep(time.Millisecond) // of the bubble: when all others wait
	}
	mem.mu.Unlock()
	must(t, <-over)
	s.wantRan(t)
	d := wantStatus(t, former, sub.Dispatch, mailbox.Queued)
	equal(t, "attempts", d.Attempts, 0)
	equal(t, "end of its claim", d.End, mailbox.EndReleased)
}
