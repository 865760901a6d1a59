package natsstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// lastHead asks whoever leads the stream for the latest head.
func lastHead(ctx context.Context, t *testing.T, url, name string, options ...nats.Option) (uint64, error) {
	t.Helper()
	nc, err := nats.Connect(url, options...)
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return 0, err
	}
	s, err := js.Stream(ctx, name)
	if err != nil {
		return 0, err
	}
	msg, err := s.GetLastMsgForSubject(ctx, name+".h.*")
	if err != nil {
		return 0, err
	}
	return msg.Sequence, nil
}

// questions are all that may tell somebody what he acts on.
func questions(store mailbox.Store, q *mailbox.Queue) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"load": func(ctx context.Context) error {
			_, err := store.Load(ctx, "t", mailbox.Need{})
			return err
		},
		"find": func(ctx context.Context) error {
			_, _, err := store.Find(ctx, mailbox.KindDispatch, "d")
			return err
		},
		"messages": func(ctx context.Context) error {
			_, err := store.Messages(ctx, "t", 1, 9)
			return err
		},
		"threads": func(ctx context.Context) error {
			_, err := store.Threads(ctx, mailbox.ThreadQuery{Limit: 9})
			return err
		},
		"dispatches": func(ctx context.Context) error {
			_, err := store.Dispatches(ctx, mailbox.DispatchQuery{Limit: 9})
			return err
		},
		"claim of nothing": func(ctx context.Context) error {
			_, _, err := q.Claim(ctx, "empty", claim("token"))
			return err
		},
		"cancel of what is gone": func(ctx context.Context) error {
			_, _, err := q.Cancel(ctx, "gone", "")
			return err
		},
	}
}

// A leader that is cut off answers what it is asked. Nobody is told what it says.
func TestLeaderCutOff(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		testskip.Skip(t, "no leader is cut off: it takes a cluster")
	}
	c := servertest.NewCluster(t)
	whole := open(t, named("cut"), c.Config)
	if _, err := newQueue(t, whole, time.Now).Enqueue(t.Context(), newEntry("t", "d")); err != nil {
		t.Fatal(err)
	}
	var store *natsstore.Store
	var url string
	c.Isolate("cut", func(at string) {
		url = at
		store = open(t, named("cut"), c.Config, func(cfg *natsstore.Config) {
			cfg.URL, cfg.Wait, cfg.Patience = at, time.Second, 3*time.Second
		})
		for name, ask := range questions(store, newQueue(t, store, time.Now)) {
			if err := ask(t.Context()); err != nil {
				t.Errorf("%s while all is well: %v", name, err)
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := lastHead(ctx, t, url, "cut"); err != nil { // what it does not say is not told, either
		t.Logf("the leader that is cut off noticed before it could be asked: %v", err)
	}
	var wg sync.WaitGroup
	for name, ask := range questions(store, newQueue(t, store, time.Now)) {
		wg.Go(func() {
			if err := ask(ctx); err == nil {
				t.Errorf("%s: the answer of a leader that is cut off was taken", name)
			}
		})
	}
	wg.Wait()
}
