package natsstore_test

import (
	"testing"
	"time"
)

// How long a leader is apart: longer than the 10 s after which it gives up; and when all that was acknowledged before
// has been said.
const (
	apart = 12 * time.Second
	late  = 2 * time.Second
)

// TestPartition takes the host of the leader off the network, with the worker on it: the others go on, it
// acknowledges nothing, and when it is back all work on, with nothing lost and nothing done twice.
func TestPartition(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: no network is partitioned: it takes half a minute")
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
	<-time.After(max(apart-time.Since(start), 0))
	if n := said.count(leader) - cut; n != 0 {
		t.Errorf("the side without a majority acknowledged %d submits", n)
	}
	others := said.all() - before
	net.join(leader)
	healed := time.Now()
	c.settle("box")
	said.comesBack(leader)
	back := time.Since(healed)
	for _, w := range workers {
		w.kill()
	}
	found, again := drain(t, store, said)
	t.Logf("apart for %s: nothing acknowledged for %s, a leader after %s; %d submits acknowledged before it and %d meanwhile; the host was back after %s; %d acknowledged, %d found, %d executions, %d again",
		healed.Sub(start).Round(time.Millisecond), stall.Round(time.Millisecond), elected.Round(time.Millisecond), before, others, back.Round(time.Millisecond),
		len(said.submitted), found, len(said.began), again)
}
