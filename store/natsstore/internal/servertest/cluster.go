package servertest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/store/natsstore"
)

const nodes = 3

// Cluster is that of a test: three servers.
type Cluster struct {
	url string

	tb      testing.TB
	options []*server.Options
	servers []*server.Server
}

// NewCluster starts one and ends it with the test.
func NewCluster(tb testing.TB) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb, servers: make([]*server.Server, nodes)}
	ports := FreePorts(tb, 2*nodes)
	var routes []*url.URL
	var urls []string
	for i := range nodes {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", ports[nodes+i])})
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	c.url = strings.Join(urls, ",")
	for i := range nodes {
		o := Options(tb.TempDir())
		o.ServerName, o.Port, o.Routes = fmt.Sprint("node", i), ports[i], routes
		o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: ports[nodes+i]}
		c.options = append(c.options, o)
		c.start(i)
	}
	tb.Cleanup(func() {
		for _, s := range c.servers {
			if s != nil {
				stop(s)
			}
		}
	})
	return c
}

func (c *Cluster) start(i int) {
	c.tb.Helper()
	s, err := Start(c.options[i])
	if err != nil {
		c.tb.Fatal(err)
	}
	c.servers[i] = s
}

// Config makes the streams of a mailbox have a copy on each server.
func (c *Cluster) Config(cfg *natsstore.Config) {
	cfg.URL, cfg.Replicas, cfg.Wait = c.url, nodes, leaderWait
}

// Last is the latest message of a subject, which may be a pattern.
func (c *Cluster) Last(ctx context.Context, stream, subject string) *jetstream.RawStreamMsg {
	c.tb.Helper()
	nc, err := nats.Connect(c.url)
	if err != nil {
		c.tb.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		c.tb.Fatal(err)
	}
	s, err := js.Stream(ctx, stream)
	if err != nil {
		c.tb.Fatal(err)
	}
	msg, err := s.GetLastMsgForSubject(ctx, subject)
	if err != nil {
		c.tb.Fatal(err)
	}
	return msg
}

// leaderWait is how long to wait for a server that may have ended.
const leaderWait = 2 * time.Second

// StopLeader ends the server that leads a stream.
func (c *Cluster) StopLeader(stream string) {
	c.tb.Helper()
	for start := time.Now(); time.Since(start) < startTime; <-time.After(10 * time.Millisecond) { // they may be about to elect one
		for i, s := range c.servers {
			if s != nil && s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, stream) {
				stop(s)
				c.servers[i] = nil
				return
			}
		}
	}
	c.tb.Errorf("nobody leads stream %q", stream)
}

// Isolate calls use with the URL of the server that leads a stream, and then ends all others. The leader notices after some 10 s.
func (c *Cluster) Isolate(stream string, use func(url string)) {
	c.tb.Helper()
	leader := -1
	for i, s := range c.servers {
		if s != nil && s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, stream) {
			leader = i
		}
	}
	if leader < 0 {
		c.tb.Fatalf("nobody leads stream %q", stream)
	}
	use(c.servers[leader].ClientURL())
	var wg sync.WaitGroup
	for i, s := range c.servers {
		if i != leader && s != nil {
			wg.Go(func() { stop(s) })
			c.servers[i] = nil
		}
	}
	wg.Wait()
}

// FreePorts are n ports on loopback that nobody uses right now.
func FreePorts(tb testing.TB, n int) (ports []int) {
	tb.Helper()
	for range n {
		l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		addr, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			tb.Fatalf("not a TCP address: %v", l.Addr())
		}
		ports = append(ports, addr.Port)
		defer l.Close() //nolint:gocritic // all at once, at the end: they must differ
	}
	return ports
}
