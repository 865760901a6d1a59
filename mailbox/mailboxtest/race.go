package mailboxtest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mortise-dev/mortise/internal/queue"
)

func raceCases() []testCase {
	return []testCase{
		{"race_one_claim_at_once_for_a_thread", raceWork},
	}
}

const racers = 8

func raceWork(w *world) {
	const threads, each = 2, 6
	for i := range threads * each {
		w.enqueue(fmt.Sprintf("t%d", i%threads), fmt.Sprintf("d%d", i))
	}
	var busy [threads]atomic.Int32
	var done atomic.Int32
	var wg sync.WaitGroup
	for i := range racers {
		q := w.newQueue(w.store)
		wg.Go(func() {
			for n := 0; done.Load() < threads*each; n++ {
				at := (i + n) % threads
				r := queue.ClaimRequest{Token: fmt.Sprintf("w%d-%d", i, n), Owner: "w", Lease: lease}
				k, ok, err := q.Claim(w.ctx(), fmt.Sprintf("t%d", at), r)
				if err != nil {
					w.t.Error(err)
					return
				}
				if !ok {
					continue
				}
				if busy[at].Add(1) != 1 {
					w.t.Error("two claims of one thread at once")
				}
				err = q.Commit(w.ctx(), hold(k), queue.Commit{ID: k.Dispatch.ID, From: k.Thread.Messages, Append: []queue.Message{{ID: k.Dispatch.ID}}})
				busy[at].Add(-1)
				_, settled := q.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: queue.Ack})
				if err = errors.Join(err, settled); err != nil {
					w.t.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	for i := range threads {
		thread := fmt.Sprintf("t%d", i)
		equal(w.t, "log of "+thread, len(w.log(thread, 1, 100)), each)
		equal(w.t, "queued", w.record(thread).Queued, 0)
	}
}
