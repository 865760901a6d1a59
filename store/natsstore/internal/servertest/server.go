package servertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/store/natsstore"
)

const startTime = 20 * time.Second

// alone is the server that most tests of a process share.
type alone struct {
	once   sync.Once
	change []func(*server.Options)
	server *server.Server
	dir    string
	err    error
}

var single alone //nolint:gochecknoglobals // Main ends it

// Main runs the tests, ends the server, looks for goroutines that are left, and returns the code to exit with. The server has the
// options of [Options], with what is to be changed of them.
func Main(m *testing.M, change ...func(*server.Options)) int {
	single.change = change
	code := m.Run()
	if single.server != nil {
		stop(single.server)
	}
	err := goleak.Find()
	if single.dir != "" {
		err = errors.Join(err, os.RemoveAll(single.dir))
	}
	if err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// URL is that of the server that the tests share. It is started when it is needed.
func URL(tb testing.TB) string {
	tb.Helper()
	single.once.Do(func() {
		if single.dir, single.err = os.MkdirTemp("", "natsstore"); single.err == nil { //nolint:usetesting // it outlives the test
			o := Options(single.dir)
			for _, f := range single.change {
				f(o)
			}
			single.server, single.err = Start(o)
		}
	})
	if single.err != nil {
		tb.Fatal(single.err)
	}
	return single.server.ClientURL()
}

// Options are those of a server on loopback that may lose what it acknowledged when its machine stops.
func Options(dir string) *server.Options {
	return &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
		JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 4 << 30,
	}
}

// Start starts a server. Whoever does shuts it down.
func Start(o *server.Options) (*server.Server, error) {
	s, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(startTime) {
		stop(s)
		return nil, fmt.Errorf("server %q did not start", o.ServerName)
	}
	return s, nil
}

// With calls use with the URL of a server that is there for it alone. It is for examples.
func With(use func(url string) error) (err error) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := Start(Options(dir))
	if err != nil {
		return err
	}
	defer stop(s)
	return use(s.ClientURL())
}

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

var stores atomic.Int64 //nolint:gochecknoglobals // it makes names

// Named opens the mailbox of a name as [Name] makes it.
func Named(ctx context.Context, name string) (*natsstore.Store, error) {
	url, box, _ := strings.Cut(name, " ")
	return natsstore.Open(ctx, natsstore.Config{URL: url, Name: box, Wait: 20 * time.Second, Patience: 2 * time.Minute})
}

// Name is a new one for a mailbox on the server that the tests share, for other processes.
func Name(tb testing.TB) string {
	tb.Helper()
	return URL(tb) + " " + NewName()
}

// NewName is a name that no other mailbox of the process has.
func NewName() string { return fmt.Sprint("box", stores.Add(1)) }

// Open opens a mailbox of a new name on the server that the tests share, and closes it with the test.
func Open(tb testing.TB, change ...func(*natsstore.Config)) *natsstore.Store {
	tb.Helper()
	cfg := natsstore.Config{Name: NewName(), Wait: 20 * time.Second, Patience: 2 * time.Minute, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&cfg)
	}
	if cfg.URL == "" {
		cfg.URL = URL(tb)
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
