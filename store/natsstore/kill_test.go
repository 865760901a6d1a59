package natsstore_test

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// killsEnv names the variable with the number of servers that TestCluster kills, however long it takes.
const killsEnv = "MORTISE_TEST_NATS_KILLS"

// How many servers are killed without it, and when the test is content with fewer.
const (
	usualKills = 12
	patient    = time.Minute
	// someSubmits are acknowledged between two kills.
	someSubmits = 30
)

// What a death may cost: mostStall is how long nothing may be acknowledged, and mostAdded how much of it may come after the
// servers have a leader again. They wait 4 to 9 s before one of them stands for election, and as long again if
// two stand at once, which no client can change.
const (
	mostStall = 10 * time.Second
	mostAdded = time.Second
)

// rounds says how many servers are killed, and whether all of them have to be.
func rounds(t *testing.T) (n int, all bool) {
	t.Helper()
	text := os.Getenv(killsEnv)
	switch {
	case text != "":
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s is %q, not a number of kills", killsEnv, text)
		}
		return n, true
	case testing.Short():
		return 1, false
	}
	return usualKills, false
}

// TestCluster kills the server that leads and then one worker, round after round, each a process, under load,
// starts them again, and compares what the workers said with what the store has in the end.
func TestCluster(t *testing.T) {
	t.Parallel()
	kills, all := rounds(t)
	c := newCluster(t)
	store := c.open("box")
	c.settle("box")
	shortContract(t, store)
	said := &heard{t: t, began: map[string]int{}}
	workers := c.work("box", said)
	elections := c.elections("box")
	load := time.Now()
	var stalls []stall
	for i := range kills {
		if !all && i > 0 && time.Since(load) > patient {
			t.Logf("content with %d rounds of %d: %s has passed", i, kills, patient)
			break
		}
		leader, err := c.settled("box")
		if err != nil && i > 0 && !all {
			t.Logf("content with %d rounds of %d: %v", i, kills, err)
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		stalls = append(stalls, c.killNode(leader, said, elections))
		w := i % len(workers)
		workers[w].kill()
		workers[w] = c.worker(w, "box", said)
		workers[w].await(t)
	}
	took := time.Since(load)
	for _, w := range workers {
		w.kill()
	}
	found, again := drain(t, store, said)
	t.Logf("%d leaders and as many workers killed in %v: %d submits acknowledged, %d refused, %d found, %d executions, %d of them again after a kill",
		len(stalls), took.Round(time.Millisecond), len(said.submitted), said.refused, found, len(said.began), again)
	report(t, stalls, all)
}

// stall is the longest time without an acknowledged submit around a kill, elected how much of it had passed when there was a
// leader again.
type stall struct{ whole, elected time.Duration }

func report(t *testing.T, stalls []stall, judge bool) {
	t.Helper()
	slices.SortFunc(stalls, func(a, b stall) int { return cmp.Compare(a.whole, b.whole) })
	over := 0
	for _, s := range stalls {
		if s.elected < 0 { // who listens was connected to the one that died
			t.Logf("nothing acknowledged for %s; nobody heard of the election", s.whole.Round(time.Millisecond))
			s.elected = s.whole
		} else {
			t.Logf("nothing acknowledged for %s; a leader after %s", s.whole.Round(time.Millisecond), s.elected.Round(time.Millisecond))
		}
		if s.whole > mostStall {
			over++
		}
		if judge && s.whole-s.elected > mostAdded && s.whole > mostStall {
			t.Errorf("submits went on %s after there was a leader, want %s at most", s.whole-s.elected, mostAdded)
		}
	}
	t.Logf("%d kills: median stall %s, longest %s, %d over %s", len(stalls), stalls[len(stalls)/2].whole.Round(time.Millisecond),
		stalls[len(stalls)-1].whole.Round(time.Millisecond), over, mostStall)
}

// killNode kills the node that leads, waits until there is work again without it, and starts it.
func (c *cluster) killNode(leader int, said *heard, elections *elections) (out stall) {
	c.t.Helper()
	said.goesOn(someSubmits)
	said.gap()
	killed := time.Now()
	c.nodes[leader].kill()
	<-time.After(time.Second) // what was acknowledged before it died has been said by then
	said.goesOn(1)
	out = stall{said.gap(), elections.last().Sub(killed)}
	c.start(leader)
	c.nodes[leader].await(c.t)
	return out
}

// elections knows when a stream had a new leader.
type elections struct{ latest atomic.Pointer[time.Time] }

func (e *elections) last() time.Time { return *e.latest.Load() }

// elections listens to what the servers say of a stream.
func (c *cluster) elections(stream string) *elections {
	c.t.Helper()
	e := &elections{}
	e.latest.Store(&time.Time{})
	nc, err := nats.Connect(c.url, append(c.place.options, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))...)
	if err == nil {
		c.t.Cleanup(nc.Close)
		_, err = nc.Subscribe("$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED."+stream, func(*nats.Msg) {
			now := time.Now()
			e.latest.Store(&now)
		})
	}
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return e
}
