package natsstore_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// gate is a dialer whose connections call at before they write the head of a thread.
type gate struct {
	root string
	at   func()
}

// Dial implements nats.CustomDialer.
func (g *gate) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	return &gated{conn, g}, err
}

type gated struct {
	net.Conn

	gate *gate
}

// Write passes on what comes before a head.
func (g *gated) Write(data []byte) (int, error) {
	at := bytes.Index(data, []byte("HPUB "+g.gate.root+".h."))
	if at < 0 {
		return g.Conn.Write(data)
	}
	if n, err := g.Conn.Write(data[:at]); err != nil {
		return n, err
	}
	g.gate.at()
	n, err := g.Conn.Write(data[at:])
	return at + n, err
}

// records counts those of a subject.
func records(t *testing.T, url, subject string) int {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(subject, ".")
	s, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(subject))
	if err != nil {
		t.Fatal(err)
	}
	return len(info.State.Subjects)
}

func oldAfter(d time.Duration) func(*natsstore.Config) {
	return func(c *natsstore.Config) { c.OrphanAge = d }
}

// A process that dies between its records and the head leaves records that nobody refers to. They go, what is in use stays,
// and so do their names.
func TestSweep_killedBetweenWrites(t *testing.T) {
	t.Parallel()
	ctx, url := t.Context(), servertest.URL(t)
	store := open(t, named("orphans"), oldAfter(time.Hour))
	q := newQueue(t, store, time.Now)
	large := newEntry("kept", "d1")
	large.Request = bytes.Repeat([]byte("r"), 600_000)
	if _, err := q.Enqueue(ctx, large); err != nil {
		t.Fatal(err)
	}
	k, _, err := q.Claim(ctx, "kept", claim("a"))
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"c1", "c2"} {
		c := mailbox.Commit{ID: id, From: i, Image: bytes.Repeat([]byte(id), 300_000), Data: bytes.Repeat([]byte(id), 4000), Append: []mailbox.Message{{ID: id, Data: []byte(id)}}}
		if err := q.Commit(ctx, hold(k), c); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 {
		killBetween(t, childSpec{URL: url, Name: "orphans", Thread: []string{"kept", "new"}[i]})
	}
	// Each of the two has left a dispatch in pieces, and a run.
	if d, r, x := records(t, url, "orphans.d.*"), records(t, url, "orphans.r.*"), records(t, url, "orphans.x.bmV3.>"); d != 3 || r != 3 || x != pieces {
		t.Fatalf("%d dispatches, %d runs and %d pieces before the sweep, want 3, 3 and %d", d, r, x, pieces)
	}
	if n, err := store.Sweep(ctx); n != 0 || err != nil {
		t.Errorf("dropped %d records that are young, %v", n, err)
	}
	const age = 100 * time.Millisecond
	sweeper := open(t, named("orphans"), oldAfter(age))
	<-time.After(2 * age)
	for range 3 { // pieces go after what they are of
		if _, err := sweeper.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if d, r, x := records(t, url, "orphans.d.*"), records(t, url, "orphans.r.*"), records(t, url, "orphans.x.bmV3.>"); d != 1 || r != 1 || x != 0 {
		t.Errorf("%d dispatches, %d runs and %d pieces after the sweep, want 1, 1 and none", d, r, x)
	}
	checkKept(ctx, t, open(t, named("orphans")), k)
	again := newQueue(t, open(t, named("orphans")), time.Now)
	if _, err := again.Enqueue(ctx, newEntry("new", dyingID)); err != nil {
		t.Errorf("the name of an orphan is taken: %v", err)
	}
}

// checkKept checks that nothing is missing that is in use.
func checkKept(ctx context.Context, t *testing.T, store *natsstore.Store, k mailbox.Taken) {
	t.Helper()
	s, err := store.Load(ctx, "kept", mailbox.Need{Dispatches: []string{"d1"}, RunsOf: true, Requests: true, Image: true})
	if err != nil {
		t.Fatal(err)
	}
	log, err := store.Messages(ctx, "kept", 1, 10)
	if err != nil || len(log) != 2 || len(s.Dispatches["d1"].Request) != 600_000 || len(s.Image) != 600_000 || len(s.Runs[k.Dispatch.RunID].Data) != 8000 {
		t.Errorf("%d messages, a request of %d, an image of %d, data of %d: %v", len(log), len(s.Dispatches["d1"].Request), len(s.Image), len(s.Runs[k.Dispatch.RunID].Data), err)
	}
}

// killBetween lets a child enqueue, which dies when it is about to write the head.
func killBetween(t *testing.T, spec childSpec) {
	t.Helper()
	c := startChild(t, spec, func(line string) { t.Logf("the child says %s", line) })
	select {
	case <-c.done:
	case <-time.After(time.Minute):
		t.Fatal("the child has not died")
	}
}

// What dies before its head has a request of 1 MiB, in so many pieces.
const (
	dyingID = "dying"
	pieces  = 3
)

// beDying enqueues and kills this process before the head.
func beDying(ctx context.Context, spec childSpec) error {
	g := &gate{root: spec.Name, at: killSelf}
	s, err := natsstore.Open(ctx, natsstore.Config{URL: spec.URL, Name: spec.Name, Options: []nats.Option{nats.SetCustomDialer(g)}})
	if err != nil {
		return err
	}
	q, err := mailbox.NewQueue(mailbox.QueueConfig{Store: s})
	if err != nil {
		return err
	}
	e := newEntry(spec.Thread, dyingID+spec.Thread)
	if spec.Thread == "new" {
		e.ID = dyingID
	}
	e.Request = bytes.Repeat([]byte("r"), 1<<20)
	_, err = q.Enqueue(ctx, e)
	return err
}

// A writer that is slow between its records and the head is left alone, and what it writes is whole.
func TestSweep_writerUnderWay(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	reached, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	g := &gate{root: "slow", at: func() {
		once.Do(func() { close(reached); <-release })
	}}
	slow := open(t, named("slow"), func(c *natsstore.Config) { c.Options = []nats.Option{nats.SetCustomDialer(g)} })
	sweeper := open(t, named("slow"))
	done := make(chan error, 1)
	e := newEntry("t", "d")
	e.Request = bytes.Repeat([]byte("r"), 2<<20)
	q := newQueue(t, slow, time.Now)
	go func() {
		_, err := q.Enqueue(ctx, e)
		done <- err
	}()
	<-reached
	if n, err := sweeper.Sweep(ctx); n != 0 || err != nil {
		t.Errorf("dropped %d records of a writer under way, %v", n, err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	k, ok, err := newQueue(t, sweeper, time.Now).Claim(ctx, "t", claim("a"))
	if err != nil || !ok || !bytes.Equal(k.Dispatch.Request, e.Request) {
		t.Errorf("claimed with a request of %d bytes: %v, %v", len(k.Dispatch.Request), ok, err)
	}
}

// A writer that was held up for longer than its records are safe writes them again before it refers to them.
func TestSweep_writerTooSlow(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const long = 8 * time.Second
	age := oldAfter(long)
	slow, sweeper := open(t, named("late"), age), open(t, named("late"), age)
	large := bytes.Repeat([]byte("r"), 1<<20)
	head := mailbox.Head{Thread: "t", Seq: 1, Queued: 1}
	d := mailbox.Dispatch{ID: "d", Thread: "t", RunID: "r", Seq: 1, Status: mailbox.Queued, MaxAttempts: 1, Request: large}
	held, tries := make(chan struct{}), 0
	done := make(chan error, 1)
	go func() {
		done <- slow.Update(ctx, "t", mailbox.Need{}, func(mailbox.State) (mailbox.Change, error) {
			tries++
			if tries == 1 {
				<-held
			}
			h := head
			return mailbox.Change{Head: &h, Dispatches: []mailbox.Dispatch{d}}, nil
		})
	}()
	<-time.After(long/2 + 100*time.Millisecond)
	close(held)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := sweeper.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	s, err := sweeper.Load(ctx, "t", mailbox.Need{Dispatches: []string{"d"}, Requests: true})
	if err != nil || tries < 2 || !bytes.Equal(s.Dispatches["d"].Request, large) {
		t.Errorf("after %d tries the request has %d bytes: %v", tries, len(s.Dispatches["d"].Request), err)
	}
}
