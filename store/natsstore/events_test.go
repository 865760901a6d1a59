package natsstore_test

import (
	"bytes"
	"encoding/base64"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// TestEvents holds that events cross from one connection to another.
func TestEvents(t *testing.T) {
	t.Parallel()
	mailboxtest.TestEvents(t, func(t *testing.T) (one, other mailbox.Store) {
		t.Helper()
		var name string
		one = open(t, func(c *natsstore.Config) { name = c.Name })
		return one, open(t, func(c *natsstore.Config) { c.Name = name })
	})
}

// TestClocks holds that leases go by the clock of the servers.
func TestClocks(t *testing.T) {
	t.Parallel()
	mailboxtest.TestClocks(t, func(t *testing.T) (one, other mailbox.Store) {
		t.Helper()
		var name string
		one = open(t, func(c *natsstore.Config) { name = c.Name })
		return one, open(t, func(c *natsstore.Config) { c.Name = name })
	})
}

// TestEvents_apart holds that what is wrong with the events of one dispatch does not keep those of others out.
func TestEvents_apart(t *testing.T) {
	t.Parallel()
	s := open(t, named("apart"))
	batch := func(dispatch string) mailbox.EventBatch {
		return mailbox.EventBatch{Stream: dispatch, Fence: 1, First: 1, Last: 1, Data: []byte("[]")}
	}
	if _, err := s.AppendEvents(t.Context(), batch("first")); err != nil { // makes the stream
		t.Fatal(err)
	}
	nc, err := nats.Connect(servertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Request("apart-events."+base64.RawURLEncoding.EncodeToString([]byte("bad")), []byte("no batch"), 20*time.Second); err != nil {
		t.Fatal(err)
	}
	refused, err := s.AppendEvents(t.Context(), batch("bad"), batch("good"))
	if err != nil || !slices.Equal(refused, []string{"bad"}) {
		t.Errorf("refused %q, %v", refused, err)
	}
	if _, err := s.ReadEvents(t.Context(), "bad", 0, 1, 0); err == nil || !strings.Contains(err.Error(), `dispatch "bad": a batch is damaged`) {
		t.Errorf("read: %v", err)
	}
	if list, err := s.ReadEvents(t.Context(), "good", 0, 1, 0); err != nil || len(list) != 1 {
		t.Errorf("%d batches, %v", len(list), err)
	}
}

// waiting is a connection that tells when its owner subscribed to events and has asked for some since.
type waiting struct {
	net.Conn

	events string
	heard  bool
	once   sync.Once
	now    chan struct{}
}

// Dial implements nats.CustomDialer.
func (w *waiting) Dial(network, address string) (c net.Conn, err error) {
	w.Conn, err = net.Dial(network, address)
	return w, err
}

// Write implements net.Conn. The client calls it under a lock.
func (w *waiting) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	if w.heard && bytes.Contains(b, []byte("PUB $JS.API.")) {
		w.once.Do(func() { close(w.now) })
	}
	w.heard = w.heard || bytes.Contains(b, []byte("SUB "+w.events))
	return n, err
}

// TestEvents_unheard holds that a reader sees what it does not hear of: its user may not subscribe to events.
func TestEvents_unheard(t *testing.T) {
	t.Parallel()
	o := servertest.Options(t.TempDir())
	o.Users = []*server.User{
		{Username: "writer", Password: "w"},
		{Username: "reader", Password: "r", Permissions: &server.Permissions{
			Subscribe: &server.SubjectPermission{Deny: []string{"unheard-events.>"}},
		}},
	}
	srv, err := servertest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Shutdown()
	as := func(user, password string, more ...nats.Option) *natsstore.Store {
		return open(t, named("unheard"), func(c *natsstore.Config) {
			c.URL, c.Options = srv.ClientURL(), slices.Concat(more, []nats.Option{nats.UserInfo(user, password)})
		})
	}
	waits := &waiting{events: "unheard-events.", now: make(chan struct{})}
	writer, reader := as("writer", "w"), as("reader", "r", nats.SetCustomDialer(waits))
	got := make(chan []mailbox.EventBatch)
	go func() {
		list, err := reader.ReadEvents(t.Context(), "d", 0, 1, time.Minute)
		if err != nil {
			t.Error(err)
		}
		got <- list
	}()
	<-waits.now
	if _, err := writer.AppendEvents(t.Context(), mailbox.EventBatch{Stream: "d", Fence: 1, First: 1, Last: 1}); err != nil {
		t.Fatal(err)
	}
	if list := <-got; len(list) != 1 {
		t.Errorf("%d batches", len(list))
	}
}

// TestEvents_foreign holds that a stream of somebody else is left alone.
func TestEvents_foreign(t *testing.T) {
	t.Parallel()
	s := open(t, named("foreign"))
	nc, err := nats.Connect(servertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "foreign-events", Subjects: []string{"theirs.>"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.AppendEvents(t.Context(), mailbox.EventBatch{Stream: "d", Fence: 1, First: 1, Last: 1})
	if err == nil || !strings.Contains(err.Error(), "it was not made for the latest events; take another Config.Name") {
		t.Errorf("got %v", err)
	}
}
