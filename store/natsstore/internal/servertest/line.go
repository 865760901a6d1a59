package servertest

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/store/natsstore"
)

// Line is a connection that can be cut in one direction: what is sent arrives, and no answer comes back. It is for
// nats.SetCustomDialer.
type Line struct {
	mu    sync.Mutex
	cut   bool
	conns []*conn
}

var errCut = errors.New("servertest: the line is cut")

// Dial implements nats.CustomDialer.
func (l *Line) Dial(network, address string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil, errCut
	}
	c, err := net.Dial(network, address) //nolint:noctx // the interface has none
	if err != nil {
		return nil, err
	}
	l.conns = append(l.conns, &conn{Conn: c, line: l})
	return l.conns[len(l.conns)-1], nil
}

// Cut loses all answers from now on.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
}

// Heal ends the connections there are, and lets others be made.
func (l *Line) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
	for _, c := range l.conns {
		_ = c.Close() // it may be closed already
	}
	l.conns = nil
}

type conn struct {
	net.Conn

	line *Line
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	lost := false
	for {
		n, err := c.Conn.Read(b)
		c.line.mu.Lock()
		lost = lost || c.line.cut
		c.line.mu.Unlock()
		if err != nil || !lost {
			return n, err
		}
	}
}

// OnLine opens a mailbox over a line, with this much patience.
func OnLine(tb testing.TB, patience time.Duration) (*natsstore.Store, *Line) {
	tb.Helper()
	line := &Line{}
	return Open(tb, func(c *natsstore.Config) {
		c.Options = []nats.Option{nats.SetCustomDialer(line)}
		c.Wait, c.Patience = lineWait, patience
	}), line
}

// lineWait is how long to wait for one answer, hiccup how long a line is cut by [Line.Hiccup].
const (
	lineWait = 400 * time.Millisecond
	hiccup   = 700 * time.Millisecond
)

// Hiccup cuts the line for longer than the first try of what do does.
func (l *Line) Hiccup(do func()) {
	l.Cut()
	heal := time.AfterFunc(hiccup, l.Heal)
	do()
	heal.Stop()
	l.Heal()
}

// Stream is one of the server that the tests share.
func Stream(tb testing.TB, name string) jetstream.Stream {
	tb.Helper()
	nc, err := nats.Connect(URL(tb))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := js.Stream(tb.Context(), name)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
