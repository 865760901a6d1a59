package natsstore_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// BenchmarkCycle compares submit, claim and acknowledge with its five messages written by hand one after the other, in blocks
// that take turns in one run, on one server that writes before it acknowledges. The server is in the process: what it uses
// is in both. Each cycle is in a thread of its own, or in one of eight that have a history.
func BenchmarkCycle(b *testing.B) {
	for _, c := range []struct {
		name    string
		threads int
		workers int
	}{{"threads=new/workers=1", 0, 1}, {"threads=8/workers=1", 8, 1}, {"threads=8/workers=8", 8, 8}} {
		b.Run(c.name, func(b *testing.B) {
			name := "bench-" + servertest.NewName()
			store, bare := open(b, named(name)), newBare(b)
			q := newQueue(b, store, time.Now)
			var next atomic.Int64
			ours := func(w int) error {
				n := next.Add(1)
				thread := fmt.Sprint("t", n)
				if c.threads > 0 {
					thread = fmt.Sprint("t", w*c.threads/c.workers+int(n)%(c.threads/c.workers))
				}
				return cycle(b.Context(), q, thread, fmt.Sprint("d", n))
			}
			work := func(cycle func(worker int) error) func() {
				return func() { b.Helper(); divide(b, c.workers, block, cycle) }
			}
			work(ours)()
			before, done := written(b, servertest.URL(b), name), next.Load()
			var of, by []cost
			for b.Loop() {
				of, by = append(of, measure(work(ours))), append(by, measure(work(func(int) error { return bare.cycle(b.Context()) })))
			}
			b.ReportMetric(float64(written(b, servertest.URL(b), name)-before)/float64(next.Load()-done), "messages/cycle")
			b.ReportMetric(median(of, wall)/1e6, "ms/cycle")
			b.ReportMetric(median(by, wall)/1e6, "ms/bare")
			b.ReportMetric(median(of, wall)/median(by, wall), "wall-ratio")
			b.ReportMetric(median(of, cpu)/median(by, cpu), "cpu-ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// block is how many cycles are measured at once.
const block = 40

// divide lets workers do n cycles.
func divide(b *testing.B, workers, n int, cycle func(worker int) error) {
	b.Helper()
	var wg sync.WaitGroup
	var begun atomic.Int64
	for w := range workers {
		wg.Go(func() {
			for begun.Add(1) <= int64(n) {
				if err := cycle(w); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// bare writes the messages of a cycle: two records that stand alone, and three heads.
type bare struct {
	js   jetstream.JetStream
	name string
	next atomic.Int64
}

func newBare(b *testing.B) *bare {
	b.Helper()
	nc, err := nats.Connect(servertest.URL(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	out := &bare{js: js, name: "bare-" + servertest.NewName()}
	_, err = js.CreateStream(b.Context(), jetstream.StreamConfig{Name: out.name, Subjects: []string{out.name + ".>"}, MaxMsgsPerSubject: 1})
	if err != nil {
		b.Fatal(err)
	}
	return out
}

// Sizes of the records of a cycle in a new thread.
const (
	birthSize = 450
	headSize  = 1000
)

func (b *bare) cycle(ctx context.Context) error {
	n := b.next.Add(1)
	put := func(kind string, size int, last uint64) (uint64, error) {
		ack, err := b.js.Publish(ctx, fmt.Sprintf("%s.%s.%d", b.name, kind, n), bytes.Repeat([]byte("x"), size), jetstream.WithExpectLastSequencePerSubject(last))
		if err != nil {
			return 0, err
		}
		return ack.Sequence, nil
	}
	_, err := put("d", birthSize, 0)
	if err == nil {
		_, err = put("r", birthSize, 0)
	}
	for last, i := uint64(0), 0; err == nil && i < 3; i++ {
		last, err = put("h", headSize, last)
	}
	return err
}

// cost is what a block of cycles took.
type cost struct{ wall, cpu time.Duration }

func measure(work func()) cost {
	used, start := processorTime(), time.Now()
	work()
	return cost{wall: time.Since(start), cpu: processorTime() - used}
}

// median takes the middle of one figure of several blocks, per cycle.
func median(costs []cost, of func(cost) time.Duration) float64 {
	var all []float64
	for _, c := range costs {
		all = append(all, float64(of(c))/block)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func wall(c cost) time.Duration { return c.wall }
func cpu(c cost) time.Duration  { return c.cpu }

// backlogEnv names the variable with the sizes of the backlogs of BenchmarkClaim and BenchmarkDue, in place of 1,000.
const backlogEnv = "MORTISE_BENCH_BACKLOG"

func backlog(b *testing.B) int {
	b.Helper()
	text := os.Getenv(backlogEnv)
	if text == "" {
		return 1000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkClaim claims and gives back in a thread with 10 and with many queued, in blocks that take turns.
func BenchmarkClaim(b *testing.B) {
	many, url := backlog(b), unsynced(b)
	queues := map[int]*mailbox.Queue{}
	before := heap()
	for _, n := range []int{10, many} {
		store := open(b, at(url))
		fill(b, store, "t", n)
		queues[n] = deepQueue(b, store, many+1)
	}
	b.Logf("%d bytes of memory for each that is queued, with the server's", (heap()-before)/many)
	tokens := 0
	work := func(q *mailbox.Queue) func() {
		return func() {
			for range block {
				tokens++
				k, ok, err := q.Claim(b.Context(), "t", claim(fmt.Sprint("token", tokens)))
				if err != nil || !ok {
					b.Fatal(ok, err)
				}
				if _, err := q.Settle(b.Context(), hold(k), mailbox.Settlement{Verdict: mailbox.GiveBack}); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	costs := map[int][]cost{}
	for b.Loop() {
		for _, n := range []int{10, many} {
			costs[n] = append(costs[n], measure(work(queues[n])))
		}
	}
	b.ReportMetric(float64(many), "backlog")
	b.ReportMetric(median(costs[10], wall)/1e6, "ms/few")
	b.ReportMetric(median(costs[many], wall)/1e6, "ms/many")
	b.ReportMetric(median(costs[many], wall)/median(costs[10], wall), "wall-ratio")
	b.ReportMetric(median(costs[many], cpu)/median(costs[10], cpu), "cpu-ratio")
	b.ReportMetric(0, "ns/op")
}

// heap is how much memory is in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc) //nolint:gosec // it fits
}

// BenchmarkDue asks what is due, with 10 threads and with many that have something queued.
func BenchmarkDue(b *testing.B) {
	for _, n := range []int{10, backlog(b)} {
		b.Run(fmt.Sprint("threads=", n), func(b *testing.B) {
			store := open(b)
			q := newQueue(b, store, time.Now)
			var next atomic.Int64
			var wg sync.WaitGroup
			for range 16 {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(n); i = next.Add(1) {
						if _, err := q.Enqueue(b.Context(), newEntry(fmt.Sprint("t", i), fmt.Sprint("d", i))); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			for b.Loop() {
				due, _, err := store.Due(b.Context(), mailbox.DueQuery{By: time.Now().Add(time.Hour), Limit: 10})
				if err != nil || len(due) != 10 {
					b.Fatal(len(due), err)
				}
			}
		})
	}
}
