package agentrun_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/memstore"
)

// TestProgress: a run outlives more deaths of its process than it has attempts if it makes a step between them; one that dies
// in the same step each time is a dead letter.
func TestProgress(t *testing.T) {
	t.Parallel()
	const deaths = 7
	for _, moves := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.New()
			var sub mailbox.Submission
			for n := range deaths + 1 {
				var dead atomic.Bool
				frail := &mailboxtest.Faulty{Store: store, Plan: func(context.Context, string) mailboxtest.Fault {
					if dead.Load() {
						return mailboxtest.FaultBefore
					}
					return mailboxtest.FaultNone
				}}
				s, calls := &tools{}, 0
				model := &counter{rounds: 2 * (deaths + 1)}
				model.fail = func(int) error { // the tool of a step before was executed
					calls++
					if calls == 2 && n < deaths || !moves && calls == 1 {
						dead.Store(true)
						return fmt.Errorf("%w: the process is dead", mailbox.ErrPermanent)
					}
					return nil
				}
				p := newProcess(t, frail, fmt.Sprint(n), model, s)
				if n == 0 {
					sub = p.submit(t, request(t, "t", abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("go")}}))
				}
				time.Sleep(5 * time.Minute)
			}
			p := newProcess(t, store, "last", &counter{rounds: 1}, &tools{})
			d := p.await(t, sub)
			want := mailbox.Acked
			if !moves {
				want = mailbox.DeadLetter
			}
			if d.Status != want {
				t.Errorf("moves %v: dispatch is %+v", moves, d)
			}
		})
	}
}
