package natsstore_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/natsstore"
)

// buffer is a log.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// refuse opens a store, which must fail with a text.
func refuse(t *testing.T, cfg natsstore.Config, want string) error {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	s, err := natsstore.Open(t.Context(), cfg)
	if err == nil {
		t.Error("it was opened", s.Close(t.Context()))
	} else if !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	return err
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]natsstore.Config{
		"Config.URL":      {},
		"Config.Stream":   {URL: "nats://127.0.0.1:1", Stream: "a.b"},
		"Config.Replicas": {URL: "nats://127.0.0.1:1", Replicas: 2},
		"Config.Wait":     {URL: "nats://127.0.0.1:1", Wait: -1},
		"Config.Memory":   {URL: "nats://127.0.0.1:1", Memory: -1},
		"connect":         {URL: "nats://user:secret@127.0.0.1:1"},
	} {
		if err := refuse(t, c, want); err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error has the password", want)
		}
	}
}

// TestForeignStream: a stream of an older version, or with limits that delete messages, is refused.
func TestForeignStream(t *testing.T) {
	t.Parallel()
	url := serve(t).ClientURL()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	old := jetstream.StreamConfig{Name: "old", Subjects: []string{"old.>"}, MaxMsgsPerSubject: 1}
	if _, err := js.CreateStream(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	_ = refuse(t, natsstore.Config{URL: url, Stream: "old"}, `"old": it was written by an older version of Mortise`)
	for want, change := range map[string]func(*jetstream.StreamConfig){
		"its limits":   func(c *jetstream.StreamConfig) { c.MaxMsgs = 1000 },
		"allow_direct": func(c *jetstream.StreamConfig) { c.AllowDirect = true },
	} {
		name := newStream()
		if err := open(t, url, name).Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		cfg := streamOf(t, url, name).CachedInfo().Config
		change(&cfg)
		if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		_ = refuse(t, natsstore.Config{URL: url, Stream: name}, want)
	}
}

// TestExisting makes nothing.
func TestExisting(t *testing.T) {
	t.Parallel()
	url := serve(t).ClientURL()
	name := newStream()
	if err := refuse(t, natsstore.Config{URL: url, Stream: name, Existing: true}, name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	apply(t, open(t, url, name), store.Batch{Thread: "t", Put: []store.Cell{{Kind: "a", Value: []byte("x")}}})
	reader := open(t, url, name, func(c *natsstore.Config) { c.Existing = true })
	if list, err := reader.ReadEvents(t.Context(), "e", 0, 1, time.Millisecond); err != nil || len(list) != 0 {
		t.Errorf("events: got %v, %v", list, err)
	}
	if got := describe(t, reader, "t"); !strings.Contains(got, "a") {
		t.Errorf("got %s", got)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	log := &buffer{}
	open(t, serve(t).ClientURL(), newStream(), func(c *natsstore.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	for _, want := range []string{"natsstore_not_replicated", "natsstore_sync_unknown"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in %s", want, log)
		}
	}
}

// TestRestart: a store goes through a restart of the server, and one that is opened then has the same.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := serve(t, func(o *server.Options) { o.StoreDir, o.SyncAlways = dir, true })
	url, port := first.ClientURL(), first.Addr().String()
	name := newStream()
	s := open(t, url, name)
	large := []store.Entry{{Log: "l", Data: make([]byte, 1<<20)}}
	if revision := apply(t, s, store.Batch{Thread: "t", ID: "1", Put: []store.Cell{{Kind: "a", Value: []byte("x")}}, Append: large}); revision < 2 {
		t.Fatalf("the revision is %d", revision)
	}
	want := describe(t, s, "t")
	first.Shutdown()
	first.WaitForShutdown()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if snap, err := s.Read(ctx, "t", store.Query{}); err == nil {
		t.Errorf("without a server it answers %+v", snap)
	}
	again, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer stop()
	if _, err := store.ApplySurely(again, s, store.Batch{Thread: "u"}); err == nil || errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("a known outcome is %v", err)
	}
	stale, stopStale := context.WithTimeout(t.Context(), time.Minute) // in which no server comes
	defer stopStale()
	if _, err := s.Apply(stale, store.Batch{Thread: "t", Base: 1, ID: "2"}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a batch for a revision that others have followed is %v, and no server is needed to refuse it", err)
	}
	serve(t, func(o *server.Options) {
		o.StoreDir, o.SyncAlways = dir, true
		o.Port = portOf(t, port)
	})
	if got := describe(t, s, "t"); got != want {
		t.Errorf("after a restart it has %.200s, want %.200s", got, want)
	}
	next := apply(t, s, store.Batch{Thread: "t", Base: store.AnyRevision, Put: []store.Cell{{Kind: "a", Value: []byte("y")}}})
	other := open(t, url, name)
	snap, err := other.Read(t.Context(), "t", store.Query{Cells: []store.Range{store.All("a")}})
	if err != nil || snap.Revision != next || string(snap.Cells[0].Value) != "y" {
		t.Errorf("got %+v, %v", snap, err)
	}
	if now, err := other.Time(t.Context()); err != nil || time.Since(now).Abs() > time.Minute {
		t.Errorf("the time is %v, %v", now, err)
	}
}
