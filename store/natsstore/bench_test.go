package natsstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/viewtest"
)

// BenchmarkApply puts a cell and appends an entry, on a server that writes to the disk before it acknowledges; with a unique place also
// takes a new one each time.
func BenchmarkApply(b *testing.B) {
	s := opened(b)
	for _, unique := range []bool{false, true} {
		b.Run(fmt.Sprintf("unique=%t", unique), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				c := store.Cell{Kind: "a", Value: make([]byte, 500)}
				if unique {
					c.Index = []store.IndexKey{{Name: "u", Key: fmt.Sprint(i), Unique: true}}
				}
				_, err := s.Apply(b.Context(), store.Batch{
					Thread: "t", Base: store.AnyRevision, Put: []store.Cell{c}, Append: []store.Entry{{Log: "l", Data: make([]byte, 200)}},
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Read(b.Context(), "t", store.Query{Cells: []store.Range{store.All("a")}}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// opened is a new store on a server of its own, which writes to the disk before it acknowledges.
func opened(b *testing.B) store.Store {
	b.Helper()
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: b.TempDir(), NoSigs: true, NoLog: true, SyncAlways: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	srv.Start()
	b.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	if !srv.ReadyForConnections(20 * time.Second) {
		b.Fatal("the server did not start")
	}
	return openedAt(b, natsstore.Config{URL: srv.ClientURL()})
}

func openedAt(b *testing.B, cfg natsstore.Config) store.Store {
	b.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	s, err := natsstore.Open(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close(context.Background()) }) // the servers end anyway
	return s
}

// replicated is a new store on three servers of its own, which write to the disk before they acknowledge.
func replicated(b *testing.B) store.Store {
	b.Helper()
	c := newCluster(b, func(o *server.Options) { o.SyncAlways = true })
	return openedAt(b, natsstore.Config{URL: c.url, Replicas: nodes})
}

func BenchmarkCycle(b *testing.B) { viewtest.BenchmarkCycle(b, opened) }

func BenchmarkCycleR3(b *testing.B) { viewtest.BenchmarkCycle(b, replicated) }

func BenchmarkBacklog(b *testing.B) { viewtest.BenchmarkBacklog(b, opened) }
