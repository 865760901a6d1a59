package natsstore_test

import (
	"context"
	"encoding/json"
	"fmt"
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

// ghost answers questions about a stream as a leader does that was cut off and is back: at once, and with what was so before. It says
// that it has heard of the others so long ago.
func ghost(t *testing.T, c *servertest.Cluster, stream string, then *jetstream.RawStreamMsg, silent time.Duration) (gone func()) {
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
	say := func(question, subject, answer, otherwise string) {
		if err != nil {
			return
		}
		_, err = nc.Subscribe("$JS.API.STREAM."+question+"."+stream, func(m *nats.Msg) {
			if strings.Contains(string(m.Data), subject) {
				_ = m.Respond([]byte(answer)) // as far as it is asked
			} else {
				_ = m.Respond([]byte(otherwise))
			}
		})
	}
	say("MSG.GET", then.Subject, string(head), `{"error":{"code":404,"err_code":10037,"description":"no message found"}}`)
	say("INFO", "", fmt.Sprintf(`{"cluster":{"leader":"ghost","replicas":[{"name":"a","active":%d},{"name":"b","active":%[1]d}]}}`, silent), "")
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return nc.Close
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
	for _, silent := range []time.Duration{12 * time.Second, time.Millisecond} {
		end := ghost(t, c, "back", then, silent)
		haunted, stop := context.WithTimeout(ctx, 3*time.Second)
		var told sync.Map
		var wg sync.WaitGroup
		for name, ask := range after(store) {
			wg.Go(func() {
				for haunted.Err() == nil {
					if there, err := ask(haunted); err == nil {
						told.Store(name, there)
						if !there {
							t.Errorf("%s: told what was so before, by one of two leaders that has heard of others %s ago", name, silent)
							return
						}
					}
				}
			})
		}
		wg.Wait()
		told.Range(func(name, _ any) bool { // a ghost that answers late is not seen: the machine is busy
			t.Logf("%s: told what is so", name)
			return true
		})
		stop()
		end()
	}
	for name, ask := range after(store) {
		if there, err := ask(ctx); err != nil || !there {
			t.Errorf("%s when it is gone: %v, %v", name, there, err)
		}
	}
}
