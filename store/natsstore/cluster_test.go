package natsstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/storetest"
)

const nodes = 3

type cluster struct {
	url     string
	servers []*server.Server
}

// newCluster starts three servers and ends them with the test.
func newCluster(tb testing.TB, change ...func(*server.Options)) *cluster {
	tb.Helper()
	c := &cluster{}
	ports := freePorts(tb, 2*nodes)
	var urls []string
	var routes []*url.URL
	for i := range nodes {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", ports[nodes+i])})
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	c.url = strings.Join(urls, ",")
	c.servers = make([]*server.Server, nodes)
	return c.start(tb, ports, routes, change)
}

// freePorts are ports on loopback that no process has.
func freePorts(tb testing.TB, n int) (ports []int) {
	tb.Helper()
	for range n {
		l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		defer l.Close() //nolint:gocritic // all at once, at the end: the ports must differ
		ports = append(ports, portOf(tb, l.Addr().String()))
	}
	return ports
}

func (c *cluster) start(tb testing.TB, ports []int, routes []*url.URL, change []func(*server.Options)) *cluster {
	tb.Helper()
	tb.Cleanup(func() {
		for _, s := range c.servers {
			if s != nil {
				s.Shutdown()
				s.WaitForShutdown()
			}
		}
	})
	for i := range nodes {
		o := &server.Options{
			Host: "127.0.0.1", Port: ports[i], JetStream: true, StoreDir: tb.TempDir(), NoSigs: true, NoLog: true, Routes: routes,
			JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 4 << 30, ServerName: fmt.Sprint("node", i),
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: ports[nodes+i]},
		}
		for _, f := range change {
			f(o)
		}
		s, err := server.NewServer(o)
		if err != nil {
			tb.Fatal(err)
		}
		c.servers[i] = s
		go s.Start()
	}
	for _, s := range c.servers {
		if !s.ReadyForConnections(20 * time.Second) {
			tb.Fatal("a server did not start")
		}
	}
	return c
}

func (c *cluster) replicated(cfg *natsstore.Config) {
	cfg.Replicas, cfg.Wait, cfg.Patience = nodes, 2*time.Second, time.Minute
}

// stopLeader ends the server that leads a stream.
func (c *cluster) stopLeader(t *testing.T, stream string) {
	t.Helper()
	eventually(t, "no server leads the stream", func() bool {
		for i, s := range c.servers {
			if s != nil && s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, stream) {
				s.Shutdown()
				s.WaitForShutdown()
				c.servers[i] = nil
				return true
			}
		}
		return false
	})
}

// TestCluster runs the contract on three servers.
func TestCluster(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	c := newCluster(t)
	storetest.TestStore(t, func(t *testing.T) (one, other store.Store) {
		t.Helper()
		name := newStream()
		return open(t, c.url, name, c.replicated), open(t, c.url, name, c.replicated)
	})
}

// TestLeader ends the server that leads the stream while two processes write.
func TestLeader(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const writers, each = 4, 25
	name := newStream()
	stores := []*natsstore.Store{open(t, c.url, name, c.replicated), open(t, c.url, name, c.replicated)}
	var wg sync.WaitGroup
	half := make(chan struct{}, writers)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if i == each/2 {
					half <- struct{}{}
				}
				b := store.Batch{
					Thread: fmt.Sprint("t", w%2), ID: fmt.Sprint(w, "/", i), Base: store.AnyRevision,
					Append: []store.Entry{{Log: "l", Data: fmt.Append(nil, w, "/", i)}},
				}
				if i%5 == 0 {
					b.Put = []store.Cell{{Kind: "a", Key: b.ID, Index: []store.IndexKey{{Name: "u", Key: b.ID, Unique: true}}}}
				}
				if err := patiently(t.Context(), stores[w%2], b); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range writers {
		<-half
	}
	c.stopLeader(t, name)
	wg.Wait()
	for _, s := range stores {
		for _, thread := range []string{"t0", "t1"} {
			snap, err := s.Read(t.Context(), thread, store.Query{Entries: []store.Span{{Log: "l", Limit: 1000}}})
			seen := map[string]bool{}
			for _, e := range snap.Entries {
				seen[string(e.Data)] = true
			}
			if err != nil || len(seen) != 2*each || len(snap.Entries) != 2*each {
				t.Errorf("thread %s has %d entries, %d of them different, want %d; %v", thread, len(snap.Entries), len(seen), 2*each, err)
			}
		}
	}
}

// patiently applies a batch until the outcome is known.
func patiently(ctx context.Context, s store.Store, b store.Batch) error {
	for {
		_, err := s.Apply(ctx, b)
		if err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrExists) || ctx.Err() != nil {
			return err
		}
	}
}

// TestCutOff: a leader without the others answers no read, although it does not know yet that it leads no longer.
func TestCutOff(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	name := newStream()
	apply(t, open(t, c.url, name, c.replicated), store.Batch{Thread: "t", Put: []store.Cell{{Kind: "a"}}})
	leader := -1
	eventually(t, "no server leads the stream", func() bool {
		for i, s := range c.servers {
			if s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, name) {
				leader = i
			}
		}
		return leader >= 0
	})
	s := open(t, c.servers[leader].ClientURL(), name, c.replicated, func(cfg *natsstore.Config) {
		cfg.Wait, cfg.Patience, cfg.Options = time.Second, 2*time.Second, []nats.Option{nats.IgnoreDiscoveredServers()}
	})
	if _, err := s.Read(t.Context(), "t", store.Query{}); err != nil {
		t.Fatal(err)
	}
	for i, other := range c.servers {
		if i != leader {
			other.Shutdown()
			c.servers[i] = nil
		}
	}
	if snap, err := s.Read(t.Context(), "t", store.Query{}); err == nil {
		t.Errorf("a leader that is alone answered %+v", snap)
	}
	if _, err := s.Apply(t.Context(), store.Batch{Thread: "t", Base: store.AnyRevision}); err == nil {
		t.Error("a leader that is alone acknowledged a batch")
	}
}

// behind is a network whose first questions a leader answers that has nothing yet: neither message 1 nor any other.
type behind struct{ asked atomic.Int32 }

// untilAsked is how often the leader is asked for message 1 until it has it.
const untilAsked = 4

var lastSeq = regexp.MustCompile(`"last_seq":\d`)

func (b *behind) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return &behindConn{c, b}, err
}

type behindConn struct {
	net.Conn

	b *behind
}

func (c *behindConn) Write(data []byte) (int, error) {
	first := []byte(`{"seq":1}`)
	if bytes.Contains(data, first) && c.b.asked.Add(1) < untilAsked {
		data = bytes.Replace(data, first, []byte(`{"seq":9}`), 1)
	}
	return c.Conn.Write(data)
}

func (c *behindConn) Read(data []byte) (int, error) {
	n, err := c.Conn.Read(data)
	if c.b.asked.Load() < untilAsked {
		copy(data, lastSeq.ReplaceAll(data[:n], []byte(`"last_seq":0`)))
	}
	return n, err
}

// TestLeader_behind: what a leader does not have yet is not taken for lost when a process has already received the operation behind it.
func TestLeader_behind(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	c, name, network := newCluster(t), newStream(), &behind{}
	one := open(t, c.url, name, c.replicated)
	other := open(t, c.url, name, c.replicated, func(cfg *natsstore.Config) { cfg.Options = append(cfg.Options, nats.SetCustomDialer(network)) })
	large := bytes.Repeat([]byte("x"), 100<<10)
	if err := patiently(t.Context(), one, store.Batch{Thread: "t", ID: "1", Base: store.AnyRevision, Put: []store.Cell{{Kind: "a", Value: large}}}); err != nil {
		t.Fatal(err)
	}
	snap, err := other.Read(t.Context(), "t", store.Query{Cells: []store.Range{store.All("a")}})
	if value, _ := snap.Cell("a", ""); err != nil || !bytes.Equal(value, large) || network.asked.Load() != untilAsked {
		t.Errorf("%d bytes, %v; message 1 was asked for %d times", len(value), err, network.asked.Load())
	}
}
