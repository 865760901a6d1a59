package inbox_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
)

const (
	benchSenders = 1000
	benchEach    = 100
)

// BenchmarkSend sends 100,000 events from 1,000 senders to one reader, through a
// box and through what it is measured against: a channel of the same depth, with
// a mutex that keeps the same count. They take turns, so that whatever else the
// machine does is the same for all; the ratios are those of the medians.
func BenchmarkSend(b *testing.B) {
	ways := []struct {
		name string
		do   func(b *testing.B)
	}{
		{"channel", benchChannel},
		{"one-by-one", func(b *testing.B) { b.Helper(); benchBox(b, func(*inbox.Box) int { return 0 }) }},
		{"drained", func(b *testing.B) { b.Helper(); benchBox(b, func(box *inbox.Box) int { return len(box.Drain()) }) }},
	}
	took := make([][]time.Duration, len(ways))
	for b.Loop() {
		for i, w := range ways {
			start := time.Now()
			w.do(b)
			took[i] = append(took[i], time.Since(start))
		}
	}
	median := func(i int) float64 {
		slices.Sort(took[i])
		return took[i][len(took[i])/2].Seconds()
	}
	b.ReportMetric(0, "ns/op")
	for i, w := range ways {
		b.ReportMetric(benchSenders*benchEach/median(i), w.name+"-events/s")
		if i > 0 {
			b.ReportMetric(median(i)/median(0), w.name+"/channel")
		}
	}
}

func benchChannel(*testing.B) {
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
	box := inbox.NewBox(0, nil)
	fromMany(func(n abi.Notice) { _ = box.Send(b.Context(), n) })
	for read := 0; read < benchSenders*benchEach; {
		if _, err := box.Recv(b.Context()); err != nil {
			b.Fatal(err)
		}
		read += 1 + drain(box)
	}
}
