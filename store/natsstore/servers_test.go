package natsstore_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store"
)

// killsEnv names the variable with the number of servers that TestCluster_killed kills, however long it takes.
const killsEnv = "MORTISE_TEST_NATS_KILLS"

const (
	usualKills = 12
	// patient is when the test is content with fewer.
	patient = time.Minute
	// someSubmits are acknowledged between two kills.
	someSubmits = 30
	// restTime bounds how long the copies of a stream take to be the same again.
	restTime = 2 * time.Minute
)

// TestCluster_killed kills the server that leads the stream and then one worker, again and again, while the suite of the mailbox kills
// processes that work on the same threads. The suite then compares what all of them acknowledged with what the store has.
func TestCluster_killed(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	testskip.Long(t)
	kills, patience := usualKills, patient
	if text := os.Getenv(killsEnv); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s is %q, not a number of kills", killsEnv, text)
		}
		kills, patience = n, time.Hour
	}
	c := startServers(t, []host{{address: "127.0.0.1"}, {address: "127.0.0.1"}, {address: "127.0.0.1"}})
	var stalls []time.Duration
	start := time.Now()
	c.judge(patience, func() error {
		for i := range kills {
			if time.Since(start) > patience || t.Failed() {
				break
			}
			if err := c.said.await(someSubmits, c.said.all); err != nil {
				return err
			}
			leader, err := c.leader()
			if err != nil && i > 0 && time.Since(start) > patience {
				t.Logf("content: %v", err) // nothing is wrong: servers may take minutes
				break
			}
			if err != nil {
				return err
			}
			stall, err := c.kill(leader)
			if err != nil {
				return err
			}
			stalls = append(stalls, stall)
			if err := c.replaceWorker(i % nodes); err != nil {
				return err
			}
		}
		return nil
	})
	slices.Sort(stalls)
	if n := len(stalls); n > 0 {
		t.Logf("killed %d leaders of %d, and as many workers; nothing acknowledged for %v (median), %v (longest)", n, kills, stalls[n/2], stalls[n-1])
	}
}

// host is where a server and a worker are, and the words that start a command there.
type host struct {
	address string
	via     []string
}

// servers are a cluster of processes, each with a worker alongside it.
type servers struct {
	t       *testing.T
	hosts   []host
	ports   []int
	confs   []string
	nodes   []*child
	workers []*child
	url     string
	stream  string
	said    *said
}

func startServers(t *testing.T, hosts []host) *servers {
	t.Helper()
	ports := freePorts(t, 2*nodes)
	c := &servers{
		t: t, hosts: hosts, ports: ports, nodes: make([]*child, nodes), workers: make([]*child, nodes), stream: newStream(),
		said: &said{t: t, by: make([]int, nodes), began: map[string]bool{}},
	}
	var urls, routes []string
	for i, h := range hosts {
		urls = append(urls, fmt.Sprintf("nats://%s:%d", h.address, ports[i]))
		routes = append(routes, fmt.Sprintf("nats://%s:%d", h.address, ports[nodes+i]))
	}
	c.url = strings.Join(urls, ",")
	for i, h := range hosts {
		dir := t.TempDir()
		conf := fmt.Sprintf("server_name: node%d\nlisten: %q\njetstream { store_dir: %q, sync_interval: always, max_mem: 64MB, max_file: 4GB }\n"+
			"cluster { name: test, listen: %q, routes: [%s] }\n",
			i, fmt.Sprint(h.address, ":", ports[i]), dir, fmt.Sprint(h.address, ":", ports[nodes+i]), strings.Join(routes, ", "))
		c.confs = append(c.confs, filepath.Join(dir, "nats.conf"))
		if err := os.WriteFile(c.confs[i], []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
		c.nodes[i] = c.startServer(i)
	}
	for _, n := range c.nodes {
		if err := n.await(); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// judge starts workers and disturbs the cluster while the suite of the mailbox kills other processes. The suite judges when both are over
// and the workers are dead.
func (c *servers) judge(patience time.Duration, disturb func() error) {
	t := c.t
	t.Helper()
	witness := open(t, c.url, c.stream, (&cluster{}).replicated) // it is there all the time
	over := make(chan struct{})
	go func() {
		defer close(over)
		err := c.work()
		if err == nil {
			err = disturb()
		}
		if err != nil {
			t.Error(err)
		}
		for _, w := range c.workers {
			w.kill()
		}
	}()
	defer func() { <-over }()
	mailboxtest.TestCrashFor(t, func(ctx context.Context, name string) (store.Store, func(context.Context) error, error) {
		<-over
		s, closeStore, err := openNamed(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		return s, closeStore, nil
	}, c.name(), patience)
	<-over
	c.said.check(witness)
}

func (c *servers) name() string { return c.stream + " " + c.url }

// work starts a worker at each server.
func (c *servers) work() error {
	for i := range c.workers {
		c.workers[i] = c.startWorker(i)
	}
	for _, w := range c.workers {
		if err := w.await(); err != nil {
			return err
		}
	}
	return nil
}

func (c *servers) startWorker(i int) *child {
	return startChild(c.t, c.hosts[i], func(line string) { c.said.record(i, line) }, workerEnv+"="+c.name(), mailboxtest.CrashVariable(c.name()))
}

func (c *servers) startServer(i int) *child {
	return startChild(c.t, c.hosts[i], func(string) {}, serverEnv+"="+c.confs[i])
}

func (c *servers) replaceWorker(i int) error {
	c.workers[i].kill()
	c.workers[i] = c.startWorker(i)
	return c.workers[i].await()
}

// kill kills the server that leads, waits until submits are acknowledged without it, and starts it again.
func (c *servers) kill(leader int) (stall time.Duration, err error) {
	c.said.stalled()
	c.nodes[leader].kill()
	<-time.After(time.Second) // what was acknowledged before is received by then
	if err := c.said.await(1, c.said.all); err != nil {
		return 0, err
	}
	stall = c.said.stalled()
	c.nodes[leader] = c.startServer(leader)
	return stall, c.nodes[leader].await()
}

// leader waits until all copies of the stream are up to date, and returns the server that leads it.
func (c *servers) leader() (int, error) {
	nc, err := nats.Connect(c.url)
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), restTime)
	defer cancel()
	for {
		once, stop := context.WithTimeout(ctx, 2*time.Second)
		s, err := js.Stream(once, c.stream)
		stop()
		if err == nil {
			info := s.CachedInfo().Cluster
			behind := slices.ContainsFunc(info.Replicas, func(r *jetstream.PeerInfo) bool { return r.Offline || !r.Current })
			if n, err := strconv.Atoi(strings.TrimPrefix(info.Leader, "node")); err == nil && !behind && len(info.Replicas) == nodes-1 {
				return n, nil
			}
			err = fmt.Errorf("the leader is %q, of %d others some are behind: %v", info.Leader, len(info.Replicas), behind)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return 0, fmt.Errorf("the copies of the stream are not the same after %v: %w", restTime, cmp.Or(err, ctx.Err()))
		}
	}
}
