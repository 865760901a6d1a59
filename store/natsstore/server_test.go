package natsstore_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/natsstore"
)

// TestMain runs the tests on one server with JetStream on disk, which is made when it is
// needed.
func TestMain(m *testing.M) {
	beChild()
	mailboxtest.CrashChild(openName)
	code := m.Run()
	if err := single.stop(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// alone is the server that most tests share.
type alone struct {
	once   sync.Once
	server *server.Server
	dir    string
	err    error
}

var single alone

func (a *alone) url(tb testing.TB) string {
	tb.Helper()
	a.once.Do(func() {
		if a.dir, a.err = os.MkdirTemp("", "natsstore"); a.err == nil { //nolint:usetesting // it outlives the test
			a.server, a.err = startServer(options(a.dir))
		}
	})
	if a.err != nil {
		tb.Fatal(a.err)
	}
	return a.server.ClientURL()
}

func (a *alone) stop() error {
	if a.server != nil {
		a.server.Shutdown()
		a.server.WaitForShutdown()
	}
	if a.dir == "" {
		return nil
	}
	return os.RemoveAll(a.dir)
}

// options are those of a server on loopback that writes before it acknowledges.
func options(dir string) *server.Options {
	return &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, SyncAlways: true, NoSigs: true, NoLog: true,
		JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 4 << 30,
	}
}

func startServer(o *server.Options) (*server.Server, error) {
	s, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		s.Shutdown()
		return nil, fmt.Errorf("server %q did not start", o.ServerName)
	}
	return s, nil
}

var stores atomic.Int64

// open opens a new store and closes it with the test.
func open(tb testing.TB, change ...func(*natsstore.Config)) *natsstore.Store {
	tb.Helper()
	cfg := natsstore.Config{Name: fmt.Sprintf("box%d", stores.Add(1)), Wait: 20 * time.Second, Patience: 2 * time.Minute}
	for _, f := range change {
		f(&cfg)
	}
	if cfg.URL == "" {
		cfg.URL = single.url(tb)
	}
	s, err := natsstore.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return s
}
