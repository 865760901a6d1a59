package background_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

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

const benchTasks, benchEach = 1000, 100

// BenchmarkEvents sends 100,000 events from 1,000 tasks into one inbox and counts
// them: none is lost. It takes turns with 1,000 goroutines that send as many through a
// channel of the same depth with a mutex; the ratios are those of the medians. The
// first counts from when all tasks run to the last event, the second all: the manager,
// the spawns, the events and the ends.
func BenchmarkEvents(b *testing.B) {
	var channel, events, all []time.Duration
	for b.Loop() {
		start := time.Now()
		benchChannel()
		between := time.Now()
		events = append(events, benchEvents(b))
		channel, all = append(channel, between.Sub(start)), append(all, time.Since(between))
	}
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return d[len(d)/2].Seconds()
	}
	base := median(channel)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(benchTasks*benchEach/base, "channel-events/s")
	b.ReportMetric(benchTasks*benchEach/median(events), "task-events/s")
	b.ReportMetric(median(events)/base, "events/channel")
	b.ReportMetric(median(all)/base, "all/channel")
}

func benchChannel() {
	ch := make(chan abi.Notice, inbox.DefaultDepth)
	var mu sync.Mutex
	accepted := 0
	for range benchTasks {
		go func() {
			for range benchEach {
				mu.Lock()
				accepted++
				mu.Unlock()
				ch <- abi.Notice{Kind: abi.NoticeCustom, TaskID: "bg_1", EventType: "tick"}
			}
		}()
	}
	for range benchTasks * benchEach {
		<-ch
	}
}

// benchEvents returns how long the events took.
func benchEvents(b *testing.B) time.Duration {
	b.Helper()
	box := inbox.NewBox(0, nil)
	m := benchManager(b, background.Config{
		Limits: background.Limits{MaxRunning: benchTasks, MaxPerThread: benchTasks},
		Ledger: into(box),
	})
	var begun sync.WaitGroup
	begun.Add(benchTasks)
	begin, end := make(chan struct{}), make(chan struct{})
	for range benchTasks {
		_, err := m.Spawn(b.Context(), background.Spec{Thread: "a", Type: "bench", Body: func(_ context.Context, task *background.Task) (any, error) {
			begun.Done()
			<-begin
			for range benchEach {
				task.Emit("tick", nil)
			}
			<-end
			return nil, nil
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
	begun.Wait()
	start := time.Now()
	close(begin)
	read(b, box, abi.NoticeCustom, benchTasks*benchEach)
	took := time.Since(start)
	close(end)
	read(b, box, abi.NoticeCompleted, benchTasks)
	if err := m.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	return took
}

// read reads so many notifications, all of one kind.
func read(b *testing.B, box *inbox.Box, kind abi.NoticeKind, n int) {
	b.Helper()
	for n > 0 {
		first, err := box.Recv(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		all := append([]abi.Notice{first}, box.Drain()...)
		for i := range all {
			if all[i].Kind != kind {
				b.Fatalf("a notice is %+v, want %s", all[i], kind)
			}
		}
		n -= len(all)
	}
}

// BenchmarkSpawnToFirstEvent is the time from Spawn to the first event at its owner.
func BenchmarkSpawnToFirstEvent(b *testing.B) {
	first := make(chan struct{}, 1)
	m := benchManager(b, background.Config{Limits: background.Limits{Keep: 1}, Ledger: &ledger{give: func(_ context.Context, _ string, n abi.Notice) error {
		if n.Kind == abi.NoticeCustom {
			first <- struct{}{}
		}
		return nil
	}}})
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
		left := &ledger{}
		m := benchManager(b, background.Config{Ledger: left, Limits: background.Limits{Keep: 100}})
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
