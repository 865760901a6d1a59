package background_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
)

func benchManager(b *testing.B, cfg background.Config) *background.Manager {
	b.Helper()
	m, err := background.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// BenchmarkEvents sends 100,000 events from 1,000 tasks into one inbox and counts
// them: none is lost.
func BenchmarkEvents(b *testing.B) {
	const tasks, each = 1000, 100
	for b.Loop() {
		box, err := inbox.New(inbox.Config{})
		if err != nil {
			b.Fatal(err)
		}
		m := benchManager(b, background.Config{
			MaxRunning: tasks, MaxPerThread: tasks,
			Deliver: func(ctx context.Context, _ string, n abi.Notice) error { return box.Send(ctx, n) },
		})
		for range tasks {
			_, err := m.Spawn(b.Context(), background.Spec{Thread: "a", Type: "bench", Body: func(_ context.Context, task *background.Task) (any, error) {
				for range each {
					task.Emit("tick", nil)
				}
				return nil, nil
			}})
			if err != nil {
				b.Fatal(err)
			}
		}
		got := map[abi.NoticeKind]int{}
		for got[abi.NoticeCompleted] < tasks {
			n, err := box.Recv(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			got[n.Kind]++
			for _, n := range box.Drain() {
				got[n.Kind]++
			}
		}
		if got[abi.NoticeCustom] != tasks*each {
			b.Fatalf("%d of %d events came", got[abi.NoticeCustom], tasks*each)
		}
		if err := m.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*tasks*(each+1)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkSpawnToFirstEvent is the time from Spawn to the first event at its owner.
func BenchmarkSpawnToFirstEvent(b *testing.B) {
	first := make(chan struct{}, 1)
	m := benchManager(b, background.Config{Keep: 1, Deliver: func(_ context.Context, _ string, n abi.Notice) error {
		if n.Kind == abi.NoticeCustom {
			first <- struct{}{}
		}
		return nil
	}})
	b.ReportAllocs()
	for b.Loop() {
		_, err := m.Spawn(b.Context(), background.Spec{Thread: "a", Type: "bench", Body: func(_ context.Context, task *background.Task) (any, error) {
			task.Emit("hello", nil)
			return nil, nil
		}})
		if err != nil {
			b.Fatal(err)
		}
		<-first
		if err := m.Wait(b.Context(), "a"); err != nil {
			b.Fatal(err)
		}
	}
	if err := m.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkMemory finishes and acknowledges 10,000 tasks with results of 1 KiB and
// reports what is left in memory at the end.
func BenchmarkMemory(b *testing.B) {
	result := string(make([]byte, 1024))
	for b.Loop() {
		left := &book{}
		m := benchManager(b, background.Config{Ledger: left, Keep: 100})
		before := heap()
		for range 10_000 {
			id, err := m.Spawn(b.Context(), background.Spec{Thread: "a", Type: "bench", Body: func(context.Context, *background.Task) (any, error) { return result + "x", nil }})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := m.WaitTask(b.Context(), id); err != nil {
				b.Fatal(err)
			}
			m.Acknowledge(b.Context(), "a", id)
			left.got = nil
		}
		b.ReportMetric(float64(int64(heap())-int64(before)), "bytes-kept")
		if n := len(m.List("a")); n > 101 {
			b.Fatalf("%d tasks are kept", n)
		}
		if err := m.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}
