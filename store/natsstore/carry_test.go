package natsstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// checkHistory checks that a store that has read nothing before finds each dispatch from d<from> on, and its run, once, by list and by id.
func checkHistory(t *testing.T, name string, from, to int) {
	t.Helper()
	ctx := t.Context()
	store := open(t, named(name))
	list, err := store.Dispatches(ctx, mailbox.DispatchQuery{Thread: "t", Limit: 10_000})
	if err != nil || len(list) != to-from {
		t.Fatalf("%d dispatches, want %d, %v", len(list), to-from, err)
	}
	for i := range list {
		if d := &list[i]; d.ID != fmt.Sprint("d", from+i) || d.Status != mailbox.Acked || d.Termination != "natural" {
			t.Errorf("dispatch %d is %s, %s, %s", from+i, d.ID, d.Status, d.Termination)
		}
	}
	q := newQueue(t, store, time.Now)
	for i := range to {
		if i%17 != 0 && i != to-1 && i != from {
			continue
		}
		d, known, err := q.Dispatch(ctx, fmt.Sprint("d", i))
		if err != nil || known != (i >= from) || known && d.Status != mailbox.Acked {
			t.Errorf("by id: %+v, %v, %v", d, known, err)
		}
		r, known, err := q.Run(ctx, fmt.Sprint("run-d", i))
		if err != nil || !known || r.Status != mailbox.RunDone || r.Dispatch != fmt.Sprint("d", i) {
			t.Errorf("run by id: %+v, %v, %v", r, known, err)
		}
	}
}

// What has ended goes from the head to the births of later dispatches, and from there to pages in births, in every order of writers, and
// is found wherever it is. A purge takes what it has to.
func TestCarried(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const name, cycles = "carried", 90
	var writers []*mailbox.Queue
	for range 3 {
		writers = append(writers, newQueue(t, open(t, named(name)), time.Now))
	}
	before, gone := written(t, servertest.URL(t), name), 0
	for i := range cycles {
		w := writers[0]
		if i >= cycles/2 { // they take turns
			w = writers[i%len(writers)]
		}
		if err := cycle(ctx, w, "t", fmt.Sprint("d", i)); err != nil {
			t.Fatal(err)
		}
		if i == cycles/2-1 {
			if n := written(t, servertest.URL(t), name) - before; n != 5*cycles/2 {
				t.Errorf("%d cycles took %d messages, want 5 each", i+1, n)
			}
		}
		switch i {
		case 20:
			checkHistory(t, name, gone, i+1)
		case 50: // what carries goes, and what it carries
			n, err := open(t, named(name)).Purge(ctx, mailbox.PurgeQuery{Statuses: []mailbox.Status{mailbox.Acked}, Before: time.Now().Add(time.Hour), Limit: 40})
			if gone = 40; err != nil || n != gone {
				t.Fatal(n, err)
			}
			checkHistory(t, name, gone, i+1)
		}
	}
	checkHistory(t, name, gone, cycles)
	if n, err := open(t, named(name), oldAfter(time.Nanosecond)).Sweep(ctx); n != 0 || err != nil {
		t.Errorf("%d records were dropped that are needed, %v", n, err)
	}
	again := newEntry("t", "d60")
	if k, err := writers[1].Enqueue(ctx, again); err != nil || !k.Repeated || k.Dispatch.Status != mailbox.Acked {
		t.Errorf("enqueued again: %+v, %v", k, err)
	}
	dropped := newEntry("t", "d3")
	if _, err := writers[2].Enqueue(ctx, dropped); !errors.Is(err, mailbox.ErrExists) {
		t.Errorf("the name of a dropped one, for a run that is still there: %v", err)
	}
	dropped.NewRun = "another"
	if k, err := writers[2].Enqueue(ctx, dropped); err != nil || k.Repeated {
		t.Errorf("the name of a dropped one: %+v, %v", k, err)
	}
	if err := writers[0].Drop(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := cycle(ctx, writers[0], "t", fmt.Sprint("d", i)); err != nil {
			t.Fatal(err)
		}
	}
	checkHistory(t, name, 0, 3)
}

// Long texts are carried too, but a page that would be very long is a record of its own.
func TestCarried_long(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const name, cycles, long = "carried-long", 18, 9000
	store := open(t, named(name))
	q := newQueue(t, store, time.Now)
	before := written(t, servertest.URL(t), name)
	for i := range cycles {
		if _, err := q.Enqueue(ctx, newEntry("t", fmt.Sprint("d", i))); err != nil {
			t.Fatal(err)
		}
		k, _, err := q.Claim(ctx, "t", claim(fmt.Sprint("token", i)))
		if err != nil {
			t.Fatal(err)
		}
		result := mailbox.Result{Status: mailbox.RunDone, Termination: "natural", Response: strings.Repeat("x", long+i)}
		if _, err := q.Settle(ctx, hold(k), mailbox.Settlement{Verdict: mailbox.Ack, Result: result}); err != nil {
			t.Fatal(err)
		}
	}
	if n := written(t, servertest.URL(t), name) - before; n != 5*cycles+1 {
		t.Errorf("%d cycles took %d messages, want 5 each and a page", cycles, n)
	}
	if n, err := open(t, named(name), oldAfter(time.Nanosecond)).Sweep(ctx); n != 0 || err != nil {
		t.Errorf("%d records were dropped that are needed, %v", n, err)
	}
	list, err := open(t, named(name)).Dispatches(ctx, mailbox.DispatchQuery{Thread: "t", Limit: 100})
	if err != nil || len(list) != cycles {
		t.Fatal(len(list), err)
	}
	for i := range list {
		if n := len(list[i].Response); n != long+i {
			t.Errorf("response %d has %d bytes", i, n)
		}
	}
}

// cutter is a dialer whose connections can be cut off when they are about to write the head of a thread.
type cutter struct {
	root  string
	armed atomic.Bool
	cut   func()
}

// Dial implements nats.CustomDialer.
func (c *cutter) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	return &cuttable{conn, c}, err
}

type cuttable struct {
	net.Conn

	by *cutter
}

func (c *cuttable) Write(data []byte) (int, error) {
	at := bytes.Index(data, []byte("HPUB "+c.by.root+".h."))
	if at < 0 || !c.by.armed.CompareAndSwap(true, false) {
		return c.Conn.Write(data)
	}
	n, err := c.Conn.Write(data[:at])
	c.by.cut()
	return n, errors.Join(err, net.ErrClosed, c.Close())
}

// A writer that dies after each birth and before the head leaves everything where it was, once. The same id can be queued
// then, whatever is left of its birth carries, and what is left goes.
func TestCarried_diedBeforeHead(t *testing.T) {
	t.Parallel()
	const name, cycles = "carried-died", 24
	ctx := t.Context()
	good := newQueue(t, open(t, named(name)), time.Now)
	for i := range cycles {
		if i < 13 { // the 17th birth has pages, and the 21st three more loads
			if err := cycle(ctx, good, "t", fmt.Sprint("d", i)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		c := &cutter{root: name}
		doomed, err := natsstore.Open(ctx, natsstore.Config{URL: servertest.URL(t), Name: name, Options: []nats.Option{nats.SetCustomDialer(c), nats.NoReconnect()}})
		if err != nil {
			t.Fatal(err)
		}
		q := newQueue(t, doomed, time.Now)
		dying, cancel := context.WithCancel(ctx)
		c.cut = cancel
		c.armed.Store(true)
		if _, err := q.Enqueue(dying, newEntry("t", fmt.Sprint("d", i))); err == nil {
			t.Fatal("it did not die")
		}
		cancel()
		if err := doomed.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if i == 18 {
			checkHistory(t, name, 0, i)
		}
		id := fmt.Sprint("d", i)
		if i%3 == 0 {
			e := newEntry("other", fmt.Sprint("d", i))
			if _, err := good.Enqueue(ctx, e); !errors.Is(err, mailbox.ErrExists) {
				t.Errorf("an id that may be under way: %v", err)
			}
		}
		if err := cycle(ctx, good, "t", id); err != nil {
			t.Fatal(err)
		}
	}
	checkHistory(t, name, 0, cycles)
	if n, err := open(t, named(name), oldAfter(time.Nanosecond)).Sweep(ctx); n != 0 || err != nil {
		t.Errorf("%d records were dropped, and all births are needed, %v", n, err)
	}
}
