package mailbox_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// lingering answers a batch that queues a request late, and counts those that come until then.
type lingering struct {
	store.Store
	answering atomic.Bool
	between   atomic.Int32
}

func (l *lingering) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	if l.answering.Load() {
		l.between.Add(1)
	}
	revision, err := l.Store.Apply(ctx, b)
	if slices.ContainsFunc(b.Put, func(c store.Cell) bool { return c.Kind == "request" }) {
		l.answering.Store(true)
		time.Sleep(100 * time.Millisecond)
		l.answering.Store(false)
	}
	return revision, err
}

// TestSubmitterClaims holds that the loop, which learns of a request before its submitter has the store's answer, leaves the claim to the
// submitter: that one need not read the thread. With Limits.Claims a request is queued first and claimed then.
func TestSubmitterClaims(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := &lingering{Store: memstore.New()}, &witness{}
		m := started(t, mailbox.Config{
			Store: l, Runtime: &script{}, Observers: []mailbox.Observer{w}, Limits: mailbox.Limits{Claims: 10},
		})
		synctest.Wait()
		polls := w.count("due ok")
		sub := background(t, m, request("t", "hello"))
		equal(t, "running", sub.Running, true)
		equal(t, "polls that found the request", w.count("due ok")-polls > 0, true)
		equal(t, "batches before the answer", l.between.Load(), 0)
		equal(t, "claims", w.count("claim ok")+w.count("claim empty"), 1)
		_, err := m.Await(t.Context(), sub.Dispatch)
		must(t, err)
	})
}
