package natsstore_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// deaf loses the next question for a record on its way to the server.
type deaf struct {
	armed atomic.Bool
	lost  chan struct{}
}

// Dial implements nats.CustomDialer.
func (d *deaf) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	return &deafened{conn, d}, err
}

type deafened struct {
	net.Conn

	deaf *deaf
}

// Write leaves the question out, from its line with the size to the end of what follows.
func (c *deafened) Write(data []byte) (int, error) {
	at := bytes.Index(data, []byte("PUB $JS.API.STREAM.MSG.GET."))
	if at < 0 || !c.deaf.armed.CompareAndSwap(true, false) {
		return c.Conn.Write(data)
	}
	line, _, _ := bytes.Cut(data[at:], []byte("\r\n"))
	var subject, reply string
	var size int
	if _, err := fmt.Sscanf(string(line), "PUB %s %s %d", &subject, &reply, &size); err != nil {
		return 0, err
	}
	rest := data[at+len(line)+size+2*len("\r\n"):]
	close(c.deaf.lost)
	_, err := c.Conn.Write(append(bytes.Clone(data[:at]), rest...))
	return len(data), err
}

// A question that nobody answers is put again when there is a new leader, long before its time is over.
func TestAsksANewLeader(t *testing.T) {
	t.Parallel()
	d := &deaf{lost: make(chan struct{})}
	s := open(t, named("deaf"), func(c *natsstore.Config) {
		c.Wait, c.Patience, c.Options = time.Hour, time.Hour, []nats.Option{nats.SetCustomDialer(d)}
	})
	if _, err := newQueue(t, s, time.Now).Enqueue(t.Context(), newEntry("t", "d")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d.armed.Store(true)
	done := make(chan error, 1)
	go func() {
		state, err := s.Load(ctx, "t", mailbox.Need{})
		if err == nil && state.Head.Queued != 1 {
			err = fmt.Errorf("the head is %+v", state.Head)
		}
		done <- err
	}()
	<-d.lost
	nc, err := nats.Connect(servertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.Publish("$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.deaf", nil); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
