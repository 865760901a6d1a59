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

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// BenchmarkCycle measures submit, claim and acknowledge of a dispatch in a thread of its own, by one worker and by eight. It reports
// milliseconds for a cycle.
func BenchmarkCycle(b *testing.B, open func(b *testing.B) store.Store) {
	b.Helper()
	w := newWorker(b, open(b), 8)
	if err := w.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
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
						w.cycle(fmt.Sprint("cycle-", count.Add(1)))
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/cycle")
		})
	}
}

// worker is a process whose jobs do nothing.
type worker struct {
	*mailbox.Mailbox

	b   *testing.B
	ran chan string
}

// Run implements mailbox.Runtime.
func (w worker) Run(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
	select {
	case w.ran <- j.Dispatch.Thread:
	default:
	}
	return mailbox.Result{}, nil
}

func newWorker(b *testing.B, s store.Store, workers int) worker {
	b.Helper()
	w := worker{b: b, ran: make(chan string, 1)}
	var err error
	w.Mailbox, err = mailbox.New(b.Context(), mailbox.Config{Store: s, Runtime: w, Events: mailbox.Events{Pause: -1}, Limits: mailbox.Limits{Workers: workers}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := w.Close(context.WithoutCancel(b.Context())); err != nil {
			b.Error(err)
		}
	})
	return w
}

func request(thread string) mailbox.Request {
	return mailbox.Request{Thread: thread, Messages: []mailbox.Input{{ID: "m", Data: make([]byte, 100)}}}
}

// cycle submits a job and waits for its end.
func (w worker) cycle(thread string) {
	sub, err := w.SubmitBackground(w.b.Context(), request(thread))
	for seq := uint64(0); err == nil; {
		var e mailbox.Event
		if e, err = sub.Events.Next(w.b.Context(), seq); e.Type == mailbox.EventSettled {
			return
		}
		seq = e.Seq
	}
	w.b.Error(err)
}

// backlogEnv names the variable with the size of the backlog of [BenchmarkBacklog], 100,000 if it is not set.
const backlogEnv = "MORTISE_BENCH_BACKLOG"

// BenchmarkBacklog executes what is due and queues as much, with 10 and with many threads that have a dispatch queued, in turns.
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
		w := newWorker(b, open(b), 1)
		w.fill(n)
		polls[i] = w.poll
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
func (w worker) fill(n int) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if _, err := w.SubmitBackground(w.b.Context(), request(fmt.Sprintf("backlog-%08d", i))); err != nil {
					w.b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// poll executes what is due first, and queues another job for its thread.
func (w worker) poll() {
	ctx := context.WithoutCancel(w.b.Context())
	for { // the only worker may still settle what it did before
		if _, err := w.Poll(ctx); err != nil {
			w.b.Fatal(err)
		}
		select {
		case ran := <-w.ran:
			if _, err := w.SubmitBackground(ctx, request(ran)); err != nil {
				w.b.Fatal(err)
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}
