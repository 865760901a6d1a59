package natsstore_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/natsstore"
)

func portOf(tb testing.TB, address string) int {
	tb.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		tb.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// line is a network that can lose all answers: what is sent arrives.
type line struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func (l *line) Dial(network, address string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil, errors.New("the line is cut")
	}
	c, err := net.Dial(network, address)
	if err == nil {
		c = &lossy{Conn: c, line: l}
		l.conns = append(l.conns, c)
	}
	return c, err
}

type lossy struct {
	net.Conn

	line *line
}

func (c *lossy) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		c.line.mu.Lock()
		cut := c.line.cut
		c.line.mu.Unlock()
		if err != nil || !cut {
			return n, err
		}
	}
}

func (l *line) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
}

func (l *line) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
	for _, c := range l.conns {
		_ = c.Close() // it may be closed
	}
	l.conns = nil
}

// TestLostAcknowledgement: a batch that was written although its acknowledgement was lost is one batch when it comes again.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	url := serve(t).ClientURL()
	name := newStream()
	l := &line{}
	s := open(t, url, name, func(c *natsstore.Config) {
		c.Options = []nats.Option{nats.SetCustomDialer(l)}
		c.Wait = 300 * time.Millisecond
	})
	other := open(t, url, name)
	for i := range 3 {
		b := store.Batch{Thread: "t", ID: fmt.Sprint(i), Base: store.AnyRevision, Append: []store.Entry{{Log: "l", Data: fmt.Append(nil, i)}}}
		if i == 2 { // an atomic batch
			b.Put = []store.Cell{{Kind: "a", Value: make([]byte, 1<<20), Index: []store.IndexKey{{Name: "u", Unique: true}}}}
		}
		l.lose()
		_, err := s.Apply(t.Context(), b)
		if err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrInvalid) {
			t.Errorf("without an answer: %v", err)
		}
		var landed store.Snapshot
		if i < 2 {
			eventually(t, "the batch did not arrive", func() bool {
				landed, err = other.Read(t.Context(), "t", store.Query{Entries: []store.Span{{Log: "l"}}})
				return err == nil && landed.Last["l"] == uint64(i+1)
			})
		}
		l.heal()
		eventually(t, "the batch fails", func() bool {
			revision, err := s.Apply(t.Context(), b)
			if err == nil && i < 2 && revision != landed.Revision {
				t.Errorf("revision %d, and %d the first time", revision, landed.Revision)
			}
			return err == nil
		})
	}
	snap, err := other.Read(t.Context(), "t", store.Query{Entries: []store.Span{{Log: "l", Limit: 10}}})
	if err != nil || len(snap.Entries) != 3 {
		t.Errorf("got %+v, %v", snap, err)
	}
}

// TestDeletedBehindItsBack: what an operator deletes is an error, and never an old or an empty answer.
func TestDeletedBehindItsBack(t *testing.T) {
	t.Parallel()
	url := serve(t).ClientURL()
	name := newStream()
	quick := func(c *natsstore.Config) { c.Wait, c.Patience = 500*time.Millisecond, time.Minute }
	s := open(t, url, name, quick)
	put := func(thread string) uint64 {
		return apply(t, s, store.Batch{Thread: thread, Base: store.AnyRevision, Put: []store.Cell{{Kind: "a", Value: []byte("x")}}})
	}
	put("t")
	middle := put("t")
	put("t")
	put("u")
	operator := streamOf(t, url, name)
	if err := operator.DeleteMsg(t.Context(), middle); err != nil {
		t.Fatal(err)
	}
	again := open(t, url, name, quick)
	if _, err := again.Read(t.Context(), "t", store.Query{}); err == nil || !strings.Contains(err.Error(), "are missing from stream") {
		t.Errorf("one message is missing: %v", err)
	}
	if _, err := again.Apply(t.Context(), store.Batch{Thread: "t", Base: store.AnyRevision}); err == nil {
		t.Error("a batch was applied to a damaged thread")
	}
	if _, err := again.Read(t.Context(), "u", store.Query{}); err != nil {
		t.Errorf("another thread: %v", err)
	}
	if err := operator.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(t.Context(), "t", store.Query{}); err == nil || !strings.Contains(err.Error(), "has lost operations") {
		t.Errorf("all messages are missing: %v", err)
	}
	if _, err := s.Apply(t.Context(), store.Batch{Thread: "t", Base: store.AnyRevision}); err == nil {
		t.Error("a batch was applied to a purged thread")
	}
}

// TestDeletedStream: a deleted stream is called that, also when it is made again.
func TestDeletedStream(t *testing.T) {
	t.Parallel()
	srv := serve(t)
	name := newStream()
	quick := func(c *natsstore.Config) { c.Wait, c.Patience = 500*time.Millisecond, time.Minute }
	s := open(t, srv.ClientURL(), name, quick)
	if err := s.Health(t.Context()); err != nil {
		t.Error(err)
	}
	apply(t, s, store.Batch{Thread: "t", Put: []store.Cell{{Kind: "a"}}})
	nc, err := nats.Connect(srv.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Request("$JS.API.STREAM.DELETE."+name, nil, time.Second); err != nil {
		t.Fatal(err)
	}
	if err := s.Health(t.Context()); err == nil || !strings.Contains(err.Error(), name+`" was deleted`) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Read(t.Context(), "t", store.Query{}); err == nil {
		t.Error("a deleted stream was read")
	}
	fresh := open(t, srv.ClientURL(), name)
	apply(t, fresh, store.Batch{Thread: "u", Put: []store.Cell{{Kind: "a"}}})
	if err := s.Health(t.Context()); err == nil || !strings.Contains(err.Error(), "made again") {
		t.Errorf("got %v", err)
	}
	if _, err := s.Read(t.Context(), "u", store.Query{}); err == nil {
		t.Error("a stream that was made again was read")
	}
}

// TestCreatedAgain: a server that cannot create the files of a stream, as while it deletes those of one of the same name, is asked again.
func TestCreatedAgain(t *testing.T) {
	t.Parallel()
	var folder string
	srv := serve(t, func(o *server.Options) { folder = o.StoreDir })
	name := newStream()
	blocked := filepath.Join(folder, "jetstream", "$G", "streams", name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(blocked), 0o700), os.WriteFile(blocked, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	go func() {
		time.Sleep(50 * time.Millisecond)
		_ = os.Remove(blocked)
	}()
	apply(t, open(t, srv.ClientURL(), name), store.Batch{Thread: "t", Put: []store.Cell{{Kind: "a"}}})
}
