package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/egress"
)

// streamRetries is how often in a row the stream of notifications is opened again before the session breaks: proxies close
// idle ones.
const streamRetries = 20

var errNoStream = errors.New("the server does not open the stream of notifications")

// overHTTP is a transport to a server over streamable HTTP, and sets the connection's stop. The SDK has no bound on a
// response that is not a stream, nor on the number of messages in one, and waits for ever for the stream of notifications.
func (s *server) overHTTP(ctx context.Context, c *connection) sdk.Transport {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	base := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 4,
		IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{Timeout: s.cfg.StartTimeout}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &socket{Conn: conn, forget: context.AfterFunc(life, func() { _ = conn.Close() })}, nil
		},
	}
	c.stop = func() {
		cancel(errClosed)
		base.CloseIdleConnections()
	}
	client := &http.Client{
		CheckRedirect: egress.SameOrigin,
		Transport: &bounded{
			base: base, headers: s.cfg.Headers, end: c.end, patience: s.cfg.StartTimeout / 4,
			closed: func(f func()) func() bool { return context.AfterFunc(life, f) },
		},
	}
	return &sdk.StreamableClientTransport{Endpoint: s.cfg.URL, HTTPClient: client, MaxEventSize: maxMessage, MaxRetries: streamRetries}
}

// socket is closed with the connection, also when it was dialled for a request that is over.
type socket struct {
	net.Conn

	forget func() bool
}

// Close implements [net.Conn].
func (s *socket) Close() error {
	s.forget()
	return s.Conn.Close()
}

// bounded adds the headers to requests, and bounds their answers.
type bounded struct {
	base    http.RoundTripper
	headers map[string]string
	meter   meter
	asked   atomic.Int64 // answers to requests of the server that are being sent
	// end ends the session; closed registers what is done when the connection is closed.
	end    func(error)
	closed func(func()) func() bool
	// patience is how long the server may take to open the stream of its notifications, which is optional.
	patience time.Duration
}

// RoundTrip implements [http.RoundTripper].
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if answers(r) {
		defer b.asked.Add(-1)
		if b.asked.Add(1) > maxRequests {
			b.end(errFlood)
			return nil, errFlood
		}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	r = r.Clone(ctx)
	for name, value := range b.headers {
		r.Header.Set(name, value)
	}
	closed := b.closed(func() { cancel(errClosed) })
	release := func() {
		closed()
		cancel(nil)
	}
	notifications := r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") == ""
	if notifications {
		timer := time.AfterFunc(b.patience, func() { cancel(errNoStream) })
		defer timer.Stop()
	}
	response, err := b.base.RoundTrip(r)
	if err != nil {
		defer release()
		if notifications { // an error would make the SDK try again for minutes, whatever is closed meanwhile
			return noStream(r), nil
		}
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	response.Body = &body{
		ReadCloser: response.Body, from: b, stream: kind == "text/event-stream", unasked: notifications, release: release,
	}
	return response, nil
}

// answers reports whether a request has an answer to one of the server: those of ours name their method early.
func answers(r *http.Request) bool {
	if r.Method != http.MethodPost || r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	begin := make([]byte, 256)
	n, _ := io.ReadFull(body, begin)
	return !bytes.Contains(begin[:n], []byte(`"method":`))
}

// noStream is the answer of a server that has no stream of notifications.
func noStream(r *http.Request) *http.Response {
	return &http.Response{
		StatusCode: http.StatusMethodNotAllowed, Status: http.StatusText(http.StatusMethodNotAllowed),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: r,
	}
}

// body is the body of an answer: a stream has a bound on what arrives in a second, anything else on its length.
type body struct {
	io.ReadCloser

	from            *bounded
	stream, unasked bool
	release         func()
	read            int
	err             error
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	if b.read += n; !b.stream && b.read > maxMessage {
		b.err = fmt.Errorf("it sent a message of more than %d bytes", maxMessage)
	}
	if b.stream {
		price := messagePrice * bytes.Count(p[:n], []byte("\n"))
		if b.unasked {
			price += n
		}
		b.err = b.from.meter.spend(price)
	}
	if b.err != nil {
		b.from.end(b.err)
		return 0, b.err
	}
	return n, err
}

// Close implements [io.Closer].
func (b *body) Close() error {
	b.release()
	return b.ReadCloser.Close()
}
