package inbox_test

import (
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
)

const (
	benchSenders = 1000
	benchEach    = 100
)

// BenchmarkSend sends 100,000 events from 1,000 senders to one reader, through a
// box and through what it is measured against: a channel of the same depth, with
// a mutex that keeps the same count.
func BenchmarkSend(b *testing.B) {
	b.Run("box", func(b *testing.B) { benchBox(b, func(*inbox.Box) int { return 0 }) })
	b.Run("box_drained", func(b *testing.B) { benchBox(b, func(box *inbox.Box) int { return len(box.Drain()) }) })
	b.Run("channel_and_mutex", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ch := make(chan abi.Notice, inbox.DefaultDepth)
			var mu sync.Mutex
			accepted := 0
			fromMany(func(n abi.Notice) {
				mu.Lock()
				accepted++
				mu.Unlock()
				ch <- n
			})
			for range benchSenders * benchEach {
				<-ch
			}
		}
		b.ReportMetric(float64(b.N)*benchSenders*benchEach/b.Elapsed().Seconds(), "events/s")
	})
}

// fromMany starts the senders and returns.
func fromMany(send func(abi.Notice)) {
	for range benchSenders {
		go func() {
			for range benchEach {
				send(abi.Notice{Kind: abi.NoticeCustom, TaskID: "bg_1", EventType: "tick"})
			}
		}()
	}
}

// benchBox reads one by one, and after each as many as drain takes.
func benchBox(b *testing.B, drain func(*inbox.Box) int) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		box, err := inbox.New(inbox.Config{})
		if err != nil {
			b.Fatal(err)
		}
		fromMany(func(n abi.Notice) { _ = box.Send(b.Context(), n) })
		for read := 0; read < benchSenders*benchEach; {
			if _, err := box.Recv(b.Context()); err != nil {
				b.Fatal(err)
			}
			read += 1 + drain(box)
		}
	}
	b.ReportMetric(float64(b.N)*benchSenders*benchEach/b.Elapsed().Seconds(), "events/s")
}
