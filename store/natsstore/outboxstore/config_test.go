package outboxstore_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
	"github.com/mortise-dev/mortise/store/natsstore/outboxstore"
)

// log is what was logged.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A stream that the loss of a server loses is warned about.
func TestNotReplicatedIsWarnedAbout(t *testing.T) {
	t.Parallel()
	said := &log{}
	mailbox := servertest.Open(t, func(c *natsstore.Config) { c.Logger = slog.New(slog.NewTextHandler(said, nil)) })
	open(t, mailbox)
	for _, want := range []string{"natsstore_not_replicated stream=" + mailbox.Link().Name + "-outbox replicas=1", "the loss of a server loses the outbox"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is not in %s", want, said)
		}
	}
}

// A stream that would lose messages is refused.
func TestForeignStreamIsRefused(t *testing.T) {
	t.Parallel()
	nc, err := nats.Connect(servertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*jetstream.StreamConfig){
		"in memory":            func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"limits drop":          func(c *jetstream.StreamConfig) { c.MaxMsgs = 1000 },
		"replicas that run":    func(c *jetstream.StreamConfig) { c.AllowDirect = true },
		"made for the outbox":  func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 },
		"made for the outbox;": func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "more."+c.Name) },
	} {
		mailbox := servertest.Open(t)
		name := mailbox.Link().Name + "-outbox"
		c := jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}, Discard: jetstream.DiscardNew}
		change(&c)
		if _, err := js.CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if _, err := outboxstore.New(t.Context(), mailbox, outboxstore.Config{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Each operation is one message, and what comes at the same time shares messages.
func TestMessages(t *testing.T) {
	t.Parallel()
	mailbox := servertest.Open(t)
	s := open(t, mailbox)
	stream := servertest.Stream(t, mailbox.Link().Name+"-outbox")
	written := func() uint64 {
		info, err := stream.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return info.State.LastSeq
	}
	const n = 10
	first := add(t, s, entry("kept"))
	before := written()
	for i := range n {
		if err := s.Remove(t.Context(), "t", add(t, s, end(fmt.Sprint(i)))); err != nil {
			t.Fatal(err)
		}
	}
	if got := written() - before; got != 2*n {
		t.Errorf("%d messages for %d operations", got, 2*n)
	}
	for range 2 { // keys that were taken, and what was removed before
		add(t, s, end("0"))
	}
	if got := written() - before; got != 2*n {
		t.Errorf("%d messages were written for nothing", got-2*n)
	}
	const writers = 64
	before = written()
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			if _, err := s.Append(t.Context(), entry(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := written() - before; got >= writers {
		t.Errorf("%d writers at once wrote %d messages", writers, got)
	}
	entries, err := s.Pending(t.Context(), "t", first, 1000)
	if err != nil || len(entries) != writers {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}
