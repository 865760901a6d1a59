package natsstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// cluster is three servers, each a process, which can be killed and started again.
type cluster struct {
	t     *testing.T
	place place
	specs []childSpec
	nodes []*child
	url   string
}

const nodes = 3

// restTime is how long the copies of a stream may take to be the same again, on a machine that has much else to do.
const restTime = 2 * time.Minute

// place says where the nodes of a cluster are.
type place struct {
	hosts [nodes]string
	// via are the words that start a command where a node is, options reach the nodes from here.
	via     [nodes][]string
	options []nats.Option
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return newClusterAt(t, place{hosts: [nodes]string{"127.0.0.1", "127.0.0.1", "127.0.0.1"}})
}

func newClusterAt(t *testing.T, p place) *cluster {
	t.Helper()
	c := &cluster{t: t, place: p, nodes: make([]*child, nodes)}
	ports := servertest.FreePorts(t, 2*nodes)
	var routes, urls []string
	for i, host := range p.hosts {
		routes = append(routes, fmt.Sprintf("%s:%d", host, ports[nodes+i]))
		urls = append(urls, fmt.Sprintf("nats://%s:%d", host, ports[i]))
	}
	c.url = strings.Join(urls, ",")
	for i, host := range p.hosts {
		c.specs = append(c.specs, childSpec{
			Node: fmt.Sprint("node", i), Dir: t.TempDir(), Host: host, Port: ports[i], Routed: ports[nodes+i], Routes: routes, Via: p.via[i],
		})
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

// work starts a worker beside each node.
func (c *cluster) work(box string, said *heard) (workers []*child) {
	c.t.Helper()
	for i := range c.nodes {
		workers = append(workers, c.worker(i, box, said))
	}
	for _, w := range workers {
		w.await(c.t)
	}
	return workers
}

func (c *cluster) worker(i int, box string, said *heard) *child {
	return startChild(c.t, childSpec{URL: c.url, Name: box, Via: c.place.via[i]}, said.from(i))
}

// open opens a store with three replicas, as soon as the cluster can make one.
func (c *cluster) open(name string) *natsstore.Store {
	c.t.Helper()
	return open(c.t, func(cfg *natsstore.Config) {
		cfg.URL, cfg.Name, cfg.Replicas, cfg.Wait, cfg.Options = c.url, name, nodes, 5*time.Second, c.place.options
	})
}

// settle waits until all copies of a stream are up to date, and returns the node that leads it.
func (c *cluster) settle(stream string) int {
	c.t.Helper()
	leader, err := c.settled(stream)
	if err != nil {
		c.t.Fatal(err)
	}
	return leader
}

func (c *cluster) settled(stream string) (leader int, err error) {
	nc, err := nats.Connect(c.url, c.place.options...)
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
		s, err := js.Stream(once, stream)
		stop()
		if err == nil {
			if i := slices.Index([]string{"node0", "node1", "node2"}, s.CachedInfo().Cluster.Leader); i >= 0 && current(s.CachedInfo().Cluster) {
				return i, nil
			}
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			if err == nil {
				err = errors.New(tell(s.CachedInfo().Cluster))
			}
			return 0, fmt.Errorf("the copies of stream %q are not the same after %s: %w", stream, restTime, err)
		}
	}
}

// tell says who leads, and how far behind the others are.
func tell(info *jetstream.ClusterInfo) string {
	text := fmt.Sprintf("the leader is %q", info.Leader)
	for _, r := range info.Replicas {
		text += fmt.Sprintf("; %s is current: %v, offline: %v, %d behind, heard of %s ago", r.Name, r.Current, r.Offline, r.Lag, r.Active)
	}
	return text
}

func current(info *jetstream.ClusterInfo) bool {
	for _, r := range info.Replicas {
		if r.Offline || !r.Current {
			return false
		}
	}
	return len(info.Replicas) == nodes-1
}
