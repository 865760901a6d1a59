package natsstore_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/viewtest"
)

func TestViews(t *testing.T) {
	t.Parallel()
	viewtest.TestViews(t, two(serve(t).ClientURL()))
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
