package outbox_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/outbox"
)

// BenchmarkDeliver queues, takes and acknowledges notices, in memory, in a journal,
// and in a journal that is on the disk before each answer, alone and with others
// that share the write.
func BenchmarkDeliver(b *testing.B) {
	for name, open := range map[string]func(b *testing.B) outbox.Store{
		"memory":  func(*testing.B) outbox.Store { return outbox.NewMemory() },
		"journal": func(b *testing.B) outbox.Store { b.Helper(); return benchFile(b, true) },
		"synced":  func(b *testing.B) outbox.Store { b.Helper(); return benchFile(b, false) },
	} {
		for _, senders := range []int{1, 64} {
			b.Run(fmt.Sprint(name, "/senders_", senders), func(b *testing.B) {
				o, err := outbox.New(b.Context(), outbox.Config{Store: open(b), Depth: 1 << 20})
				if err != nil {
					b.Fatal(err)
				}
				b.SetParallelism(senders)
				b.ReportAllocs()
				if senders == 1 {
					for b.Loop() {
						benchOne(b, o, "a")
					}
				} else {
					var n atomic.Int64
					b.RunParallel(func(pb *testing.PB) {
						thread := fmt.Sprint(n.Add(1))
						for pb.Next() {
							benchOne(b, o, thread)
						}
					})
				}
				if err := o.Close(b.Context()); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

func benchFile(b *testing.B, noSync bool) outbox.Store {
	b.Helper()
	f, err := outbox.OpenFile(outbox.FileConfig{Path: filepath.Join(b.TempDir(), "outbox"), NoSync: noSync})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	return f
}

func benchOne(b *testing.B, o *outbox.Outbox, thread string) {
	b.Helper()
	if err := o.Deliver(b.Context(), thread, abi.Notice{Kind: abi.NoticeCustom, TaskID: "t", EventType: "tick"}); err != nil {
		b.Error(err)
		return
	}
	d, err := o.Take(b.Context(), thread)
	if err != nil {
		b.Error(err)
		return
	}
	if err := d.Ack(b.Context(), 256); err != nil {
		b.Error(err)
	}
}
