package viewtest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
	"github.com/mortise-dev/mortise/store"
)

// BenchmarkCycle measures submit, claim and acknowledge of a dispatch in a thread of its own, by one worker and by eight. It reports
// milliseconds for a cycle.
func BenchmarkCycle(b *testing.B, open func(b *testing.B) store.Store) {
	b.Helper()
	q := queueOn(b, open(b))
	var count atomic.Int64
	for _, workers := range []int{1, 8} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			var wg sync.WaitGroup
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			for range workers {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						cycle(b, q, fmt.Sprint("cycle-", count.Add(1)))
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/cycle")
		})
	}
}

func queueOn(b *testing.B, s store.Store) *queue.Queue {
	b.Helper()
	q, err := queue.New(queue.Config{Store: s})
	if err != nil {
		b.Fatal(err)
	}
	return q
}

func entry(thread string) queue.Entry {
	return queue.Entry{
		ID: "d-" + thread, Thread: thread, NewRun: "r-" + thread, OwnID: true, OwnRun: true, Unread: true, Priority: queue.PriorityDefault, MaxAttempts: 5, Request: make([]byte, 200),
	}
}

func cycle(b *testing.B, q *queue.Queue, thread string) {
	b.Helper()
	_, err := q.Enqueue(b.Context(), entry(thread))
	if err == nil {
		settle(b, q, thread, queue.Settlement{Verdict: queue.Ack, Result: queue.Result{Status: queue.RunDone}})
		return
	}
	b.Error(err)
}

// settle claims a thread and settles its dispatch.
func settle(b *testing.B, q *queue.Queue, thread string, s queue.Settlement) {
	b.Helper()
	k, ok, err := q.Claim(b.Context(), thread, queue.ClaimRequest{Token: "token", Owner: "worker", Lease: time.Minute, Instance: "instance"})
	if err == nil && ok {
		_, err = q.Settle(b.Context(), queue.Hold{Thread: thread, Dispatch: k.Dispatch.ID, Token: "token"}, s)
	}
	if err != nil || !ok {
		b.Error(ok, err)
	}
}

// backlogEnv names the variable with the size of the backlog of [BenchmarkBacklog], 100,000 if it is not set.
const backlogEnv = "MORTISE_BENCH_BACKLOG"

// BenchmarkBacklog polls for what is due, claims it and gives it back, with 10 and with many threads that have a dispatch queued, in turns.
// It reports milliseconds with the backlog, and how many times as long that is as with 10: the ratio of medians.
func BenchmarkBacklog(b *testing.B, open func(b *testing.B) store.Store) {
	b.Helper()
	many := 100_000
	if text := os.Getenv(backlogEnv); text != "" {
		var err error
		if many, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	var polls [2]func()
	for i, n := range []int{10, many} {
		q := queueOn(b, open(b))
		fill(b, q, n)
		polls[i] = func() { poll(b, q) }
	}
	var times [2][]float64
	for b.Loop() {
		for i, poll := range polls {
			start := time.Now()
			for range 20 {
				poll()
			}
			times[i] = append(times[i], float64(time.Since(start).Microseconds())/1000/20)
		}
	}
	slices.Sort(times[0])
	slices.Sort(times[1])
	few, full := times[0][len(times[0])/2], times[1][len(times[1])/2]
	b.ReportMetric(full, "ms/poll")
	b.ReportMetric(full/few, "ratio")
}

// fill queues a dispatch in each of n threads.
func fill(b *testing.B, q *queue.Queue, n int) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if _, err := q.Enqueue(b.Context(), entry(fmt.Sprintf("backlog-%08d", i))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func poll(b *testing.B, q *queue.Queue) {
	b.Helper()
	due, _, err := q.Due(context.WithoutCancel(b.Context()), queue.DueQuery{By: time.Now(), Limit: 5})
	if err != nil || len(due) == 0 {
		b.Fatal(len(due), err)
	}
	settle(b, q, due[0].ID, queue.Settlement{Verdict: queue.GiveBack})
}
