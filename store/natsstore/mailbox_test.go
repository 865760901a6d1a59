package natsstore_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/viewtest"
)

// TestViews has a server for each test: one that sends megabytes answers no other test for seconds under the race detector.
func TestViews(t *testing.T) {
	t.Parallel()
	viewtest.TestViews(t, func(t *testing.T) (one, other store.Store) {
		t.Helper()
		return two(serve(t).ClientURL())(t)
	})
}

func TestMailbox(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	viewtest.TestMailbox(t, two(serve(t).ClientURL()), 30)
}

// openNamed opens the store "stream URL". Its connection notices a host that is cut off while a call still lasts.
func openNamed(ctx context.Context, name string) (store.Store, func(context.Context) error, error) {
	stream, url, _ := strings.Cut(name, " ")
	s, err := natsstore.Open(ctx, natsstore.Config{
		URL: url, Stream: stream, Patience: time.Minute, Logger: slog.New(slog.DiscardHandler), Options: []nats.Option{nats.PingInterval(2 * time.Second)},
	})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

func TestViews_killed(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	testskip.Plain(t)
	url := serve(t).ClientURL()
	viewtest.TestKilled(t, openNamed, func(*testing.T) string { return newStream() + " " + url }, 45*time.Second)
}

// idle is a runtime whose runs are done at once.
type idle struct{}

func (idle) Run(context.Context, *mailbox.Job) (mailbox.Result, error) { return mailbox.Result{}, nil }

// TestMailbox_health: a server that is stopped is a store that cannot be used, in a time that is shorter than leases, and usable again when it
// is back, though calls wait much longer for it.
func TestMailbox_health(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), freePorts(t, 1)[0]
	start := func() *server.Server {
		return serve(t, func(o *server.Options) { o.StoreDir, o.Port = dir, port })
	}
	srv := start()
	m, err := mailbox.New(t.Context(), mailbox.Config{Store: open(t, srv.ClientURL(), newStream()), Runtime: idle{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	became := func(down bool, bound time.Duration) error {
		t.Helper()
		for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			err := m.Health()
			if took := time.Since(begin); (err != nil) == down {
				t.Logf("down %v after %v: %v", down, took, err)
				return err
			} else if took > bound {
				t.Fatalf("down is not %v after %v: %v", down, took, err)
			}
		}
	}
	srv.Shutdown()
	srv.WaitForShutdown()
	if err := became(true, 20*time.Second); !strings.Contains(err.Error(), "no answer of nats://127.0.0.1") {
		t.Errorf("health is %v", err)
	}
	start()
	_ = became(false, 30*time.Second)
}
