package natsstore_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore"
)

// cluster is three servers, each a process, which can be killed and started again.
type cluster struct {
	t     *testing.T
	specs []childSpec
	nodes []*child
	url   string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	const nodes = 3
	c := &cluster{t: t, nodes: make([]*child, nodes)}
	ports := freePorts(t, 2*nodes)
	var routes, urls []string
	for i := range nodes {
		routes = append(routes, fmt.Sprintf("127.0.0.1:%d", ports[nodes+i]))
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	c.url = strings.Join(urls, ",")
	for i := range nodes {
		c.specs = append(c.specs, childSpec{Node: fmt.Sprint("node", i), Dir: t.TempDir(), Port: ports[i], Routed: ports[nodes+i], Routes: routes})
		c.start(i)
	}
	for _, n := range c.nodes {
		n.await(t)
	}
	return c
}

func (c *cluster) start(i int) {
	c.nodes[i] = startChild(c.t, c.specs[i], func(string) {})
}

func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() }) // closed below; the ports must differ
		addr, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			t.Fatalf("not a TCP address: %v", l.Addr())
		}
		ports = append(ports, addr.Port)
		defer l.Close() //nolint:gocritic // all at once, at the end
	}
	return ports
}

// open opens a store with three replicas, as soon as the cluster can make one.
func (c *cluster) open(name string) *natsstore.Store {
	c.t.Helper()
	return open(c.t, func(cfg *natsstore.Config) { cfg.URL, cfg.Name, cfg.Replicas, cfg.Wait = c.url, name, 3, 5*time.Second })
}

// settle waits until all copies of a stream are up to date, and returns the node that leads it.
func (c *cluster) settle(stream string) int {
	c.t.Helper()
	nc, err := nats.Connect(c.url)
	if err != nil {
		c.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	for {
		once, stop := context.WithTimeout(ctx, 2*time.Second)
		s, err := js.Stream(once, stream)
		stop()
		if err == nil {
			if i := slices.Index([]string{"node0", "node1", "node2"}, s.CachedInfo().Cluster.Leader); i >= 0 && current(s.CachedInfo().Cluster) {
				return i
			}
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			if err == nil {
				c.t.Logf("the cluster: %+v", *s.CachedInfo().Cluster)
				for _, r := range s.CachedInfo().Cluster.Replicas {
					c.t.Logf("replica: %+v", *r)
				}
			}
			c.t.Fatalf("the cluster has not come to rest in time: %v", err)
		}
	}
}

func current(info *jetstream.ClusterInfo) bool {
	for _, r := range info.Replicas {
		if r.Offline || !r.Current {
			return false
		}
	}
	return len(info.Replicas) == 2
}

// heard is what all workers have said.
type heard struct {
	t  *testing.T
	mu sync.Mutex

	submitted []string
	began     map[string]int
	refused   int
	last      time.Time
	stall     time.Duration
}

func (h *heard) line(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	what, rest, _ := strings.Cut(line, " ")
	switch what {
	case "submitted":
		h.submitted = append(h.submitted, rest)
		now := time.Now()
		h.stall, h.last = max(h.stall, now.Sub(h.last)), now
	case "refused":
		h.refused++
	case "began":
		h.began[rest]++
		if h.began[rest] > 1 {
			h.t.Errorf("the claim %q was carried out twice", rest)
		}
	}
}

// goesOn waits for another acknowledged submit.
func (h *heard) goesOn() {
	h.t.Helper()
	count := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.submitted)
	}
	for before, start := count(), time.Now(); count() == before; {
		if time.Since(start) > time.Minute {
			h.t.Fatal("no submit is acknowledged while a server is down")
		}
		<-time.After(50 * time.Millisecond)
	}
}

// gap returns the longest time without an acknowledged submit since it was asked last.
func (h *heard) gap() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	longest := max(h.stall, time.Since(h.last))
	h.stall, h.last = 0, time.Now()
	return longest
}

// patient is how long the load may last before the test is content with fewer rounds.
const patient = 20 * time.Second

// TestCluster kills one server and one worker after the other, each a process, under load, and compares
// what the workers said with what the store has in the end.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	store := c.open("box")
	c.settle("box")
	shortContract(t, store)
	said := &heard{t: t, began: map[string]int{}}
	spec := childSpec{URL: c.url, Name: "box"}
	workers := make([]*child, 3)
	for i := range workers {
		workers[i] = startChild(t, spec, said.line)
	}
	for _, w := range workers {
		w.await(t)
	}
	rounds := len(workers)
	if testing.Short() {
		rounds = 1
	}
	load := time.Now()
	var stalls []string
	for i := range rounds {
		if i > 0 && time.Since(load) > patient {
			t.Logf("content with %d rounds of %d: the machine is slow", i, rounds)
			rounds = i
			break
		}
		<-time.After(time.Second)
		said.gap()
		leader := c.settle("box")
		c.nodes[leader].kill()
		<-time.After(time.Second)
		said.goesOn()
		c.start(leader)
		c.nodes[leader].await(t)
		c.settle("box")
		stalls = append(stalls, said.gap().Round(time.Millisecond).String())
		workers[i].kill()
		workers[i] = startChild(t, spec, said.line)
		workers[i].await(t)
	}
	took := time.Since(load)
	for _, w := range workers {
		w.kill()
	}
	found, again := drain(t, store, said)
	t.Logf("%d leaders and as many workers killed in %v: %d submits acknowledged, %d refused, %d found, %d executions, %d of them again after a kill; longest time without an acknowledged submit in each round: %s",
		rounds, took.Round(time.Millisecond), len(said.submitted), said.refused, found, len(said.began), again, strings.Join(stalls, ", "))
}

// drain lets a last mailbox finish what is left, and checks.
func drain(t *testing.T, store mailbox.Store, said *heard) (found, again int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	box, err := mailbox.New(ctx, workConfig(store, func(format string, args ...any) { said.line(fmt.Sprintf(format, args...)) }))
	if err == nil {
		err = box.Start(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	for live := []mailbox.Status{mailbox.Queued, mailbox.Claimed}; ; {
		list, err := store.Dispatches(ctx, mailbox.DispatchQuery{Statuses: live, Limit: 1})
		if err != nil {
			t.Fatalf("what is left did not end: %v", err)
		}
		if len(list) == 0 {
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	if err := box.Close(ctx); err != nil {
		t.Error(err)
	}
	return checkDispatches(ctx, t, store, said), checkLogs(ctx, t, store)
}

// checkDispatches checks that what was acknowledged is there and that all has ended.
func checkDispatches(ctx context.Context, t *testing.T, store mailbox.Store, said *heard) int {
	t.Helper()
	list, err := store.Dispatches(ctx, mailbox.DispatchQuery{Limit: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for i := range list {
		d := &list[i]
		if !strings.HasPrefix(d.Thread, "t") {
			continue
		}
		there[d.ID] = true
		s, err := store.Load(ctx, d.Thread, mailbox.Need{Runs: []string{d.RunID}})
		if err != nil {
			t.Fatal(err)
		}
		if run := s.Runs[d.RunID]; d.Status != mailbox.Acked || run.Status != mailbox.RunDone || run.Termination != "natural" {
			t.Errorf("dispatch %q is %s (%s), its run is %s, %s", d.ID, d.Status, d.LastError, run.Status, run.Termination)
		}
	}
	said.mu.Lock()
	defer said.mu.Unlock()
	if len(said.submitted) == 0 {
		t.Error("nothing was submitted")
	}
	for _, id := range said.submitted {
		if !there[id] {
			t.Errorf("dispatch %q was acknowledged and is lost", id)
		}
	}
	return len(there)
}

// checkLogs checks that nobody wrote to a thread after its next claim, and that what was finished was not begun again.
func checkLogs(ctx context.Context, t *testing.T, store mailbox.Store) (again int) {
	t.Helper()
	for n := range workThreads {
		thread := fmt.Sprint("t", n)
		log, err := store.Messages(ctx, thread, 1, 1_000_000)
		if err != nil {
			t.Fatal(err)
		}
		last, steps := 0, 0
		begun, finished := map[string]bool{}, map[string]bool{}
		for _, m := range log {
			var id string
			var fence, step int
			if _, err := fmt.Sscanf(m.ID, "%s %d %d", &id, &fence, &step); err != nil {
				t.Fatalf("message %q: %v", m.ID, err)
			}
			if fence > last {
				if steps = 0; begun[id] {
					again++
				}
			}
			if fence < last || step != steps || finished[id] {
				t.Errorf("thread %s: message %d is %q, after claim %d and %d steps; finished: %v", thread, m.Seq, m.ID, last, steps, finished[id])
			}
			last, steps = fence, steps+1
			begun[id], finished[id] = true, step == workSteps-1
		}
		for id := range begun {
			if !finished[id] {
				t.Errorf("thread %s: %q was begun and never finished", thread, id)
			}
		}
	}
	return again
}
