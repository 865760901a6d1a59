package inbox_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// BenchmarkDeliver queues, takes and acknowledges notifications, in memory and in a SQLite file, alone and
// with other threads that share the write.
func BenchmarkDeliver(b *testing.B) {
	for name, open := range map[string]func(b *testing.B) store.Store{
		"memory": func(*testing.B) store.Store { return memstore.New() },
		"sqlite": benchFile,
	} {
		for _, senders := range []int{1, 64} {
			b.Run(fmt.Sprint(name, "/senders_", senders), func(b *testing.B) {
				o, err := inbox.New(b.Context(), inbox.Config{Store: open(b), Depth: 1 << 20})
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

func benchFile(b *testing.B) store.Store {
	b.Helper()
	f, err := sqlitestore.Open(b.Context(), sqlitestore.Config{Path: filepath.Join(b.TempDir(), "inbox.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close(context.Background()) })
	return f
}

func benchOne(b *testing.B, o *inbox.Inbox, thread string) {
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
	if err := ack(b.Context(), d, 256); err != nil {
		b.Error(err)
	}
}
