package agentrun_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/memstore"
)

// TestUnreadSurvives holds that a message which a run took, and had no time to read, is read soon and once, wherever the process of the
// run loses its store after that.
func TestUnreadSurvives(t *testing.T) {
	t.Parallel()
	for _, fault := range []mailboxtest.Fault{mailboxtest.FaultBefore, mailboxtest.FaultAfter} {
		for after := int32(1); after <= 5; after++ {
			t.Run(fmt.Sprintf("%s_%d", fault, after), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { unreadSurvives(t, after, fault) })
			})
		}
	}
}

func unreadSurvives(t *testing.T, after int32, fault mailboxtest.Fault) {
	t.Helper()
	store := memstore.New()
	var armed, died atomic.Bool
	var updates atomic.Int32
	frail := &mailboxtest.Faulty{Store: store, Plan: func(_ context.Context, operation string) mailboxtest.Fault {
		switch {
		case died.Load():
			return mailboxtest.FaultBefore
		case !armed.Load() || operation != "apply" || updates.Add(1) < after:
			return mailboxtest.FaultNone
		}
		died.Store(true)
		return fault
	}}
	late := &atEnd{entered: make(chan struct{}), leave: make(chan struct{})}
	one := newProcess(t, frail, "one", &counter{}, &tools{}, late)
	sub := one.submit(t, request(t, "t", user("go")))
	<-late.entered
	live, err := one.box.SubmitLive(t.Context(), request(t, "t", user("one more")), sub.Run)
	must(t, err)
	if live.Dispatch != sub.Dispatch {
		t.Fatalf("submission is %+v", live)
	}
	armed.Store(true)
	close(late.leave)
	synctest.Wait()
	two := newProcess(t, store, "two", &counter{}, &tools{})
	time.Sleep(5 * time.Minute)
	two.await(t, sub)
	got := log(t, store, "t")
	if n := len(got); n < 4 || got[n-1] != "assistant: counted to 0" || got[n-2] != "user: one more" || slices.Index(got, "user: one more") != n-2 {
		t.Errorf("log is %q", got)
	}
}
