package natsstore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
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

// ghost answers questions about a stream as a leader does that was cut off and is back: at once, and with what was so before. It
// has heard of the others 12 s ago.
func ghost(t *testing.T, c *servertest.Cluster, stream string, then *jetstream.RawStreamMsg) (gone func()) {
	t.Helper()
	var cfg natsstore.Config
	c.Config(&cfg)
	nc, err := nats.Connect(cfg.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	head, err := json.Marshal(map[string]any{"message": map[string]any{"subject": then.Subject, "seq": then.Sequence, "data": then.Data, "time": then.Time}})
	if err != nil {
		t.Fatal(err)
	}
	say := func(question string, answer func(m *nats.Msg) []byte) {
		_, err := nc.Subscribe("$JS.API.STREAM."+question+"."+stream, func(m *nats.Msg) { _ = m.Respond(answer(m)) }) // as far as it is asked
		if err == nil {
			err = nc.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	state := []byte(`{"cluster":{"leader":"ghost","replicas":[{"name":"a","active":12000000000},{"name":"b","active":12000000000}]}}`)
	say("INFO", func(*nats.Msg) []byte { return state })
	for url := range strings.SplitSeq(cfg.URL, ",") {
		seen(t, url, "$JS.API.STREAM.INFO."+stream, state)
	}
	say("MSG.GET", func(m *nats.Msg) []byte {
		if strings.Contains(string(m.Data), then.Subject) {
			return head
		}
		return []byte(`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`)
	})
	return nc.Close
}

// seen waits until a question put to a server has an answer among others. A server that is gone is asked nothing.
func seen(t *testing.T, url, question string, answer []byte) {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		return
	}
	defer nc.Close()
	sub, err := nc.SubscribeSync(nc.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); time.Since(start) < 10*time.Second; {
		if err := nc.PublishRequest(question, sub.Subject, nil); err != nil {
			t.Fatal(err)
		}
		for {
			m, err := sub.NextMsg(time.Second)
			if err != nil {
				break
			}
			if bytes.Equal(m.Data, answer) {
				return
			}
		}
	}
	t.Errorf("no answer %s by way of %s", answer, url)
}

// after asks in several ways whether the dispatch of that id is there.
func after(store mailbox.Store) map[string]func(context.Context) (bool, error) {
	return map[string]func(context.Context) (bool, error){
		"load": func(ctx context.Context) (bool, error) {
			s, err := store.Load(ctx, "t", mailbox.Need{Dispatches: []string{"after"}})
			_, there := s.Dispatches["after"]
			return there, err
		},
		"find": func(ctx context.Context) (bool, error) {
			_, there, err := store.Find(ctx, mailbox.KindDispatch, "after")
			return there, err
		},
		"dispatches": func(ctx context.Context) (bool, error) {
			list, err := store.Dispatches(ctx, mailbox.DispatchQuery{Thread: "t", Limit: 9})
			return len(list) == 2, err
		},
	}
}

// A leader that was cut off and is back says what was so before, until it hears of the other one. Nobody is told.
func TestLeaderIsBack(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		testskip.Skip(t, "no leader is cut off: it takes a cluster")
	}
	ctx := t.Context()
	c := servertest.NewCluster(t)
	store := open(t, named("back"), c.Config)
	q := newQueue(t, store, time.Now)
	if _, err := q.Enqueue(ctx, newEntry("t", "before")); err != nil {
		t.Fatal(err)
	}
	then := c.Last(ctx, "back", "back.h.*")
	c.StopLeader("back")
	if _, err := q.Enqueue(ctx, newEntry("t", "after")); err != nil {
		t.Fatal(err)
	}
	for name, ask := range questions(store, q) {
		if err := ask(ctx); err != nil {
			t.Errorf("%s while there is one leader: %v", name, err)
		}
	}
	end := ghost(t, c, "back", then)
	haunted, stop := context.WithTimeout(ctx, 3*time.Second)
	defer stop()
	var wg sync.WaitGroup
	for name, ask := range after(store) {
		wg.Go(func() {
			for haunted.Err() == nil {
				there, err := ask(haunted)
				switch {
				case err == nil && !there:
					t.Errorf("%s: told what was so before, by a leader that is not one any more", name)
					return
				case err == nil: // the ghost answers late, since the machine is busy
					t.Logf("%s: told what is so", name)
				}
			}
		})
	}
	wg.Wait()
	end()
	for name, ask := range after(store) {
		if there, err := ask(ctx); err != nil || !there {
			t.Errorf("%s when it is gone: %v, %v", name, there, err)
		}
	}
}
