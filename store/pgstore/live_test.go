package pgstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// pull waits for a signal of a thread.
func pull(t *testing.T, s *pgstore.Store, thread string) {
	t.Helper()
	for start := time.Now(); time.Since(start) < time.Minute; {
		list, err := s.Pull(t.Context(), 10, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if list[i].Thread == thread {
				return
			}
		}
	}
	t.Fatalf("no signal of thread %q came", thread)
}

func submit(t *testing.T, s *pgstore.Store, thread, id string) {
	t.Helper()
	_, err := newQueue(t, s).Enqueue(t.Context(), mailbox.Entry{ID: id, Thread: thread, NewRun: "run-" + id, MaxAttempts: 3})
	if err != nil {
		t.Fatal(err)
	}
}

// A signal reaches every process; many go as few notices, and names of any length and letter fit.
func TestSignals_otherProcess(t *testing.T) {
	t.Parallel()
	c := config(t)
	one, other := open(t, c), open(t, c)
	want := map[string]bool{}
	for i := range 60 {
		thread := fmt.Sprint(i, strings.Repeat("\x01", 250))
		want[thread] = true
		submit(t, one, thread, fmt.Sprint("d", i, strings.Repeat("\"", 240)))
	}
	for len(want) > 0 {
		list, err := other.Pull(t.Context(), 7, time.Minute)
		if err != nil || len(list) == 0 || len(list) > 7 {
			t.Fatalf("%d signals are missing, %d came: %v", len(want), len(list), err)
		}
		for i := range list {
			delete(want, list[i].Thread)
			if err := errors.Join(list[i].Receipt.Nack(t.Context(), 0), list[i].Receipt.Ack(t.Context())); err != nil {
				t.Error(err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := other.Pull(ctx, 1, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("pulled with a context that is over: %v", err)
	}
}

// A thread that this process claims at once is nothing to tell the others. On a machine that is too busy for "at once" it is done
// again.
func TestSignals_claimedMeanwhile(t *testing.T) {
	t.Parallel()
	var one, other *pgstore.Store
	for quick := false; !quick; {
		c := config(t)
		c.Coalesce = time.Second
		one, other = open(t, c), open(t, c)
		start := time.Now()
		if err := cycle(t.Context(), newQueue(t, one), "mine"); err != nil {
			t.Fatal(err)
		}
		quick = time.Since(start) < c.Coalesce
	}
	submit(t, one, "yours", "d")
	list, err := other.Pull(t.Context(), 10, time.Minute)
	if err != nil || len(list) != 1 || list[0].Thread != "yours" || list[0].Dispatch != "d" {
		t.Errorf("signals %+v, %v", list, err)
	}
}

func send(t *testing.T, s *pgstore.Store, to mailbox.Target, c mailbox.Command) (bool, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return s.Deliver(ctx, to, c)
}

// Commands of any size go to the process that listened last, one at a time.
func TestLive_otherProcess(t *testing.T) {
	t.Parallel()
	c := config(t)
	one, other, third := open(t, c), open(t, c), open(t, c)
	target := mailbox.Target{Thread: "t\x00", Run: "r", Dispatch: "d"}
	payload := bytes.Repeat([]byte{0, 255, '\''}, 1<<18)
	heard := make(chan mailbox.Command, 10)
	var inside sync.Mutex
	accept := func(_ context.Context, c mailbox.Command) bool {
		if !inside.TryLock() {
			t.Error("two commands at once")
		}
		defer inside.Unlock()
		heard <- c
		return c.Kind != mailbox.CommandCancel
	}
	stopFirst, err := other.Listen(t.Context(), target, func(context.Context, mailbox.Command) bool {
		t.Error("the first listener hears")
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := third.Listen(t.Context(), target, accept)
	if err != nil {
		t.Fatal(err)
	}
	stopFirst()
	ok, err := send(t, one, target, mailbox.Command{Kind: mailbox.CommandMessages, ID: "c\x00", Payload: payload})
	if !ok || err != nil {
		t.Fatalf("not delivered: %v, %v", ok, err)
	}
	if got := <-heard; got.ID != "c\x00" || got.Kind != mailbox.CommandMessages || !bytes.Equal(got.Payload, payload) {
		t.Errorf("heard %q, %d bytes", got.ID, len(got.Payload))
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if ok, err := send(t, one, target, mailbox.Command{Kind: mailbox.CommandCancel}); ok || err != nil {
				t.Errorf("a refused command: %v, %v", ok, err)
			}
		})
	}
	wg.Wait()
	stop()
	if ok, err := send(t, one, target, mailbox.Command{}); ok || err != nil {
		t.Errorf("delivered to nobody: %v, %v", ok, err)
	}
	var left int
	err = connect(t, c).QueryRow(t.Context(), fmt.Sprintf(`SELECT (SELECT count(*) FROM %s.command) + (SELECT count(*) FROM %[1]s.listener)`, c.Schema)).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d rows are left: %v", left, err)
	}
}

// Who gives up takes the command back; a listener that died is told at once.
func TestLive_nobodyAnswers(t *testing.T) {
	t.Parallel()
	c := config(t)
	one, other := open(t, c), open(t, c)
	target := mailbox.Target{Thread: "t"}
	entered, release := make(chan struct{}), make(chan struct{})
	stop, err := other.Listen(t.Context(), target, func(context.Context, mailbox.Command) bool {
		close(entered)
		<-release
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	if ok, err := one.Deliver(ctx, target, mailbox.Command{ID: "slow"}); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("no answer: %v, %v", ok, err)
	}
	close(release)
	stop()
	// A process that is gone: its row is there, and the lock of its connection is not.
	exec(t, c, `INSERT INTO `+c.Schema+`.listener VALUES ('["gone","",""]', 12345, 1)`)
	if ok, err := send(t, one, mailbox.Target{Thread: "gone"}, mailbox.Command{}); ok || err != nil {
		t.Errorf("delivered to a process that is gone: %v, %v", ok, err)
	}
}

// When the connection that listens breaks there is another one soon, and the listeners move.
func TestLive_reconnects(t *testing.T) {
	t.Parallel()
	c := config(t)
	one, other := open(t, c), open(t, c)
	target := mailbox.Target{Thread: "t"}
	stop, err := other.Listen(t.Context(), target, func(context.Context, mailbox.Command) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	exec(t, c, `SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN `+c.Schema+`.listener n ON l.classid = ((n.node >> 32) & 4294967295)::oid
		AND l.objid = (n.node & 4294967295)::oid WHERE l.locktype = 'advisory'`)
	wait := 200 * time.Millisecond
	for start, ok := time.Now(), false; !ok; {
		if time.Since(start) > 2*time.Minute {
			t.Fatal("the listener is not back")
		}
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		ok, _ = one.Deliver(ctx, target, mailbox.Command{Kind: mailbox.CommandMessages})
		if ctx.Err() != nil {
			wait *= 2 // who asks too early hears nothing, and neither does who has no time on a busy machine
		}
		cancel()
	}
	submit(t, one, "t", "d")
	pull(t, other, "t")
	// What is no notice of ours does no harm.
	exec(t, c, `SELECT pg_notify('mortise_`+c.Schema+`', p) FROM unnest(ARRAY['', 'null', '{', '{"s":[["x"]]}', '{"c":"x","n":1}', '{"a":"x"}']) p`)
	submit(t, one, "u", "e")
	pull(t, other, "u")
}
