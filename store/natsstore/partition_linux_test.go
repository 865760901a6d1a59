package natsstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore"
)

// How long a leader is apart: longer than the 10 s after which it gives up; and when all that was acknowledged before
// has been said.
const (
	apart = 12 * time.Second
	late  = 2 * time.Second
)

// reader is a store on the host of a leader, and how to ask that leader.
type reader struct {
	*natsstore.Store

	url     string
	options []nats.Option
}

func (n *network) reader(c *cluster, host int) reader {
	n.t.Helper()
	r := reader{url: fmt.Sprintf("nats://%s:%d", n.address(host), c.specs[host].Port), options: []nats.Option{nats.SetCustomDialer(inside(n.host(host)))}}
	r.Store = open(n.t, func(cfg *natsstore.Config) {
		cfg.URL, cfg.Name, cfg.Options, cfg.Wait, cfg.Patience = r.url, "box", r.options, time.Second, 2*time.Second
	})
	return r
}

// isNotTold holds that a store does not take the word of a leader that is cut off, which has not heard of what the others did.
func (r reader) isNotTold(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if seq, err := lastHead(ctx, t, r.url, "box", r.options...); err != nil {
		t.Logf("the leader that is cut off says nothing any more: %v", err)
	} else {
		t.Logf("the leader that is cut off says that head %d is the latest", seq)
	}
	if _, err := r.Threads(ctx, mailbox.ThreadQuery{Limit: 1}); err == nil {
		t.Error("the side without a majority lists threads")
	}
}

// TestPartition takes the host of the leader off the network, with the worker on it: the others go on, it
// acknowledges nothing, and when it is back all work on, with nothing lost and nothing done twice. It does not wait until that server
// has the same records as the others: they go back through what it had written on its own one record at a time (as of 2.15), which takes minutes
// now and then.
func TestPartition(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		testskip.Skip(t, "no network is partitioned: it takes half a minute")
	}
	net := newNetwork(t)
	c := newClusterAt(t, net.place())
	store := c.open("box")
	c.settle("box")
	said := &heard{t: t, began: map[string]int{}}
	workers := c.work("box", said)
	elections := c.elections("box")
	said.goesOn(someSubmits)
	leader := c.settle("box")
	port := c.specs[leader].Port
	if !net.reaches(leader, port) {
		t.Fatal("the host of the leader is not reached before it is cut off")
	}
	beside := net.reader(c, leader)
	said.gap()
	before, start := said.all(), time.Now()
	net.cut(leader)
	if net.reaches(leader, port) {
		t.Fatal("the host of the leader is still reached")
	}
	<-time.After(late)
	cut := said.count(leader)
	said.goesOn(1)
	stall, elected := said.gap(), elections.last().Sub(start)
	beside.isNotTold(t)
	<-time.After(max(apart-time.Since(start), 0))
	if n := said.count(leader) - cut; n != 0 {
		t.Errorf("the side without a majority acknowledged %d submits", n)
	}
	others := said.all() - before
	net.join(leader)
	healed := time.Now()
	said.comesBack(leader)
	back := time.Since(healed)
	for _, w := range workers {
		w.kill()
	}
	found, again := drain(t, store, said)
	ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	t.Logf("nothing acknowledged for %s, a leader after %s (if anybody heard); %d submits acknowledged before it and %d meanwhile", ms(stall), ms(max(elected, 0)), before, others)
	t.Logf("a submit at the host %s after it was joined; %d acknowledged, %d found, %d executions, %d again", ms(back), len(said.submitted), found, len(said.began), again)
}
