package natsstore_test

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
)

// BenchmarkCycle is submit, claim and acknowledge on one server that writes before it acknowledges. Each
// worker has threads of its own.
func BenchmarkCycle(b *testing.B) {
	for _, workers := range []int{1, 8} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			name := fmt.Sprint("bench", stores.Add(1))
			store := open(b, named(name))
			queues := make([]*mailbox.Queue, workers)
			for i := range queues {
				queues[i] = newQueue(b, store, time.Now)
			}
			before := written(b, single.url(b), name)
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for w, q := range queues {
				wg.Go(func() {
					for {
						n := next.Add(1)
						if n > int64(b.N) {
							return
						}
						if err := cycle(b.Context(), q, fmt.Sprintf("t%d-%d", w, n%16), fmt.Sprint("d", n)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(written(b, single.url(b), name)-before)/float64(b.N), "messages/op")
		})
	}
}

// BenchmarkBare writes the five messages of a cycle with nothing around them: what a cycle is measured against.
func BenchmarkBare(b *testing.B) {
	nc, err := nats.Connect(single.url(b))
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	name := fmt.Sprint("bare", stores.Add(1))
	open(b, named(name)) // makes the stream
	data := bytes.Repeat([]byte("x"), 1000)
	for n := 0; b.Loop(); n++ {
		for i := range 5 {
			if _, err := js.Publish(b.Context(), fmt.Sprintf("%s.x.%d.%d", name, i, n), data, jetstream.WithExpectLastSequencePerSubject(0)); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkClaim claims and gives back in a thread with a queue behind it, and in a store with many threads.
func BenchmarkClaim(b *testing.B) {
	for _, backlog := range []int{10, 1000} {
		b.Run(fmt.Sprint("queued=", backlog), func(b *testing.B) {
			q := newQueue(b, open(b), time.Now)
			for i := range backlog {
				if _, err := q.Enqueue(b.Context(), newEntry("t", fmt.Sprint("d", i))); err != nil {
					b.Fatal(err)
				}
			}
			for i := 0; b.Loop(); i++ {
				k, ok, err := q.Claim(b.Context(), "t", claim(fmt.Sprint("token", i)))
				if err != nil || !ok {
					b.Fatal(ok, err)
				}
				if _, err := q.Settle(b.Context(), hold(k), mailbox.Settlement{Verdict: mailbox.GiveBack}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
