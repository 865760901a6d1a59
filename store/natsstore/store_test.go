package natsstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/storetest"
	"github.com/mortise-dev/mortise/store/viewtest"
)

func TestMain(m *testing.M) {
	beChild()
	viewtest.Child(openNamed)
	goleak.VerifyTestMain(m)
}

// serve starts a server on loopback and ends it with the test.
func serve(t *testing.T, change ...func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 4 << 30,
	}
	for _, f := range change {
		f(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server did not start")
	}
	return s
}

var streams atomic.Int64

// newStream is the name of a stream that no other test has.
func newStream() string { return fmt.Sprint("s", streams.Add(1)) }

// open opens a store and closes it with the test.
func open(t *testing.T, url, stream string, change ...func(*natsstore.Config)) *natsstore.Store {
	t.Helper()
	cfg := natsstore.Config{URL: url, Stream: stream, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&cfg)
	}
	s, err := natsstore.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// two opens new streams twice each.
func two(url string) storetest.OpenFunc {
	return func(t *testing.T) (one, other store.Store) {
		t.Helper()
		name := newStream()
		return open(t, url, name, unhurried), open(t, url, name, unhurried)
	}
}

// unhurried is for suites that judge what is stored and not how fast: under the race detector a server takes seconds for some megabytes.
func unhurried(c *natsstore.Config) { c.Wait, c.Patience = time.Minute, 2*time.Minute }

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.TestStore(t, two(serve(t).ClientURL()))
}

// TestEager runs the contract with a snapshot after each two operations.
func TestEager(t *testing.T) {
	t.Parallel()
	url := serve(t).ClientURL()
	eager := func(t *testing.T) (one, other store.Store) {
		t.Helper()
		name := newStream()
		return open(t, url, name, unhurried).Eager(), open(t, url, name, unhurried, func(c *natsstore.Config) { c.Memory = 1 }).Eager()
	}
	t.Run("contract", func(t *testing.T) {
		t.Parallel()
		storetest.TestStore(t, eager)
	})
	t.Run("model", func(t *testing.T) {
		t.Parallel()
		storetest.TestModel(t, eager, testskip.Rounds(20, 8))
	})
}

func TestEvents(t *testing.T) {
	t.Parallel()
	storetest.TestEvents(t, two(serve(t).ClientURL()))
}

func TestModel(t *testing.T) {
	t.Parallel()
	storetest.TestModel(t, two(serve(t).ClientURL()), testskip.Rounds(30, 10))
}
