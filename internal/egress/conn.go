package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// errBudget stops a connection whose bytes are used up, errHeader one whose
// response headers are too large.
var (
	errBudget = errors.New("egress: byte budget used up")
	errHeader = errors.New("egress: headers too large")
)

// wire is a connection below TLS. It remembers an end that came from the network:
// a peer that speaks TLS says goodbye within TLS before that.
type wire struct {
	net.Conn

	cut bool
}

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		w.cut = true
	}
	return n, err
}

// unlimited is no limit of one read: bodies are bounded by who reads them.
const unlimited = -1

// conn is a connection to one origin that serves one request at a time. It
// counts what passes, above TLS.
type conn struct {
	net.Conn

	// below is the connection below TLS.
	below  *wire
	origin string
	bytes  *bucket
	stats  *counters
	r      *bufio.Reader
	// left is how many bytes may still be read, or unlimited.
	left int
	// answered means that the server sent something since the request began.
	answered bool
	// tooLong means that the headers did not end within their limit.
	tooLong bool
	// over means that the byte budget ended.
	over atomic.Bool

	// wrote gets whether the request was written as a whole.
	wrote chan bool
	// stop ends the watch over the context of the request.
	stop func() bool
	// watched is closed when the watch over an idle connection ends, and closing
	// idle reports whether it is still good.
	watched chan struct{}
	idleErr error
}

func newConn(inner net.Conn, below *wire, origin string, bytes *bucket, stats *counters) *conn {
	c := &conn{Conn: inner, below: below, origin: origin, bytes: bytes, stats: stats, left: unlimited}
	c.r = bufio.NewReader(c)
	return c
}

// Read charges the budget for what came.
func (c *conn) Read(p []byte) (int, error) {
	if c.left == 0 {
		c.tooLong = true
		return 0, errHeader
	}
	if c.left > 0 {
		p = p[:min(len(p), c.left)]
	}
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) && c.below.cut && c.Conn != net.Conn(c.below) {
		err = io.ErrUnexpectedEOF // TLS lets it pass, and a body that was cut would look whole
	}
	if n <= 0 {
		return n, err
	}
	c.answered = true
	if c.left > 0 {
		c.left -= n
	}
	c.stats.update(func(s *Stats) { s.BytesIn += int64(n) })
	if !c.bytes.drain(int64(n)) {
		c.over.Store(true)
		return 0, errBudget
	}
	return n, err
}

// Write charges the budget before anything is sent.
func (c *conn) Write(p []byte) (int, error) {
	if !c.bytes.drain(int64(len(p))) {
		c.over.Store(true)
		return 0, errBudget
	}
	n, err := c.Conn.Write(p)
	c.stats.update(func(s *Stats) { s.BytesOut += int64(n) })
	return n, err
}

// Close closes the connection without a word of goodbye, for which TLS would wait
// until the server reads it. It may be called more than once, at any time.
func (c *conn) Close() error { return c.below.Close() }

// roundTrip sends a request and reads the headers of its response, at most
// headerBytes of them. The end of ctx ends both, and reading the body. The caller calls finish.
func (c *conn) roundTrip(ctx context.Context, req *http.Request, headerBytes int) (*http.Response, error) {
	c.left, c.answered, c.tooLong = headerBytes, false, false
	wrote := make(chan bool, 1)
	c.wrote = wrote
	c.stop = context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	go func() {
		err := req.Write(c)
		if c.over.Load() {
			_ = c.Close() // the response to half a request is not worth waiting for
		}
		wrote <- err == nil
	}()
	for {
		resp, err := http.ReadResponse(c.r, req)
		if err != nil {
			return nil, err
		}
		switch {
		case resp.StatusCode >= 200:
			c.left = unlimited
			return resp, nil
		case resp.StatusCode < 100 || resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errStatus
		}
	}
}

// errStatus is a status that no response to our requests may have.
var errStatus = errors.New("egress: unexpected status")

// body reads all of a body, and reports more than limit bytes as !fits.
func body(resp *http.Response, limit int) (data []byte, fits bool, err error) {
	if resp.Body == http.NoBody {
		return nil, true, nil
	}
	if resp.ContentLength > int64(limit) {
		return nil, false, nil
	}
	data, err = io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	return data, len(data) <= limit, err
}

// finish ends a request. It reports whether the connection can serve another one,
// and closes it if not. done reports that the body was read to its end.
func (c *conn) finish(resp *http.Response, done bool) bool {
	reusable := done && !resp.Close && c.r.Buffered() == 0 && c.written()
	if !c.stop() || !reusable {
		_ = c.Close()
		if c.wrote != nil {
			<-c.wrote
		}
		return false
	}
	return true
}

// written waits a moment for the end of writing, because a response can be here
// before the writer has noticed that it is through.
func (c *conn) written() bool {
	const moment = 50 * time.Millisecond
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case whole := <-c.wrote:
		c.wrote = nil
		return whole
	case <-timer.C:
		return false
	}
}
