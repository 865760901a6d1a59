package natsstore_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore"
)

// fill queues n dispatches in a thread, many in each transition.
func fill(tb testing.TB, store mailbox.Store, thread string, n int) {
	tb.Helper()
	const once = 250
	at := time.Now().Add(-time.Hour).Truncate(time.Millisecond).UTC()
	for first := 0; first < n; first += once {
		err := store.Update(tb.Context(), thread, mailbox.Need{}, func(s mailbox.State) (c mailbox.Change, err error) {
			h := s.Head
			for i := first; i < min(first+once, n); i++ {
				h.Seq++
				h.Queued++
				id := fmt.Sprint(thread, "-", i)
				c.Dispatches = append(c.Dispatches, mailbox.Dispatch{
					ID: id, Thread: thread, RunID: "run-" + id, Seq: h.Seq, Priority: mailbox.PriorityDefault, Status: mailbox.Queued,
					AvailableAt: at, MaxAttempts: 5, CreatedAt: at, UpdatedAt: at, Request: []byte("request " + id), Digest: id,
				})
				c.Runs = append(c.Runs, mailbox.Run{ID: "run-" + id, Thread: thread, Status: mailbox.RunCreated, CreatedAt: at, UpdatedAt: at})
			}
			h.DueAt, h.UpdatedAt = at, at
			c.Head = &h
			return c, nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// deepQueue is a queue whose threads may have so many.
func deepQueue(tb testing.TB, store mailbox.Store, depth int) *mailbox.Queue {
	tb.Helper()
	q, err := mailbox.NewQueue(mailbox.QueueConfig{Store: store, Skew: -1, Depth: depth})
	if err != nil {
		tb.Fatal(err)
	}
	return q
}

// effort is what a claim costs that is given back: entries looked at, and messages and bytes sent.
type effort struct{ looks, messages, bytes int }

// claimed measures claims with so many queued, and returns the middle of each figure: now and then one writes a page.
func claimed(t *testing.T, queued int) effort {
	t.Helper()
	store := open(t)
	looks, traffic := natsstore.CountWork(store)
	fill(t, store, "t", queued)
	q := deepQueue(t, store, queued+1)
	var work, messages, bytes []int
	for n := range 21 {
		before, looked := traffic(), *looks
		k, ok, err := q.Claim(t.Context(), "t", claim(fmt.Sprint("token", n)))
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if _, err := q.Settle(t.Context(), hold(k), mailbox.Settlement{Verdict: mailbox.GiveBack}); err != nil {
			t.Fatal(err)
		}
		after := traffic()
		work = append(work, *looks-looked)
		messages, bytes = append(messages, int(after.OutMsgs-before.OutMsgs)), append(bytes, int(after.OutBytes-before.OutBytes)) //nolint:gosec // small
	}
	return effort{middle(work), middle(messages), middle(bytes)}
}

func middle(list []int) int {
	slices.Sort(list)
	return list[len(list)/2]
}

// What a claim looks at grows with the logarithm of the queue, and what it sends hardly does.
func TestClaimWork(t *testing.T) {
	t.Parallel()
	const short, long = 100, 3000
	few, many := claimed(t, short), claimed(t, long)
	t.Logf("a claim that is given back, with %d queued and with %d: %+v, %+v", short, long, few, many)
	if few.looks == 0 {
		t.Error("nothing was counted")
	}
	if more, most := float64(many.looks-few.looks), 40*math.Log2(long/short); more > most {
		t.Errorf("%.0f more entries are looked at, want %.0f at most", more, most)
	}
	if many.messages != few.messages || 4*many.bytes > 5*few.bytes {
		t.Errorf("%d messages and %d bytes are sent with many, %d and %d with few", many.messages, many.bytes, few.messages, few.bytes)
	}
}
