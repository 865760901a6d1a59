package mcpproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/egress"
)

// Bounds of a [Remote].
const (
	// MaxRemote is how large an answer over HTTP, or an event in one, may be in bytes.
	MaxRemote = 16 << 20
	// MaxRequests is how many requests may wait for their answers.
	MaxRequests = 64
	// ackTime is how long a message without an answer may take to be accepted, and a request to be sent, before the next one is.
	ackTime = 10 * time.Second
	// linger is how long a stream may continue when all of its requests are answered or cancelled.
	linger = 2 * time.Second
	// endGrace is how long requests may take when the client has gone, and endTime the end of the session.
	endGrace, endTime = 5 * time.Second, 2 * time.Second
)

// RemoteConfig configures a [Remote].
type RemoteConfig struct {
	// URL is the server's. Errors and logs name its origin only, for a path or query may be a secret.
	URL *url.URL
	// Headers are sent with each request to the URL's origin; their values are secrets.
	Headers map[string]string
	Logger  *slog.Logger
}

// Remote is a server over Streamable HTTP as two streams for [Proxy.Run]: each Write is one message of the client, and what is read are
// the server's messages, one a line. A message passes byte for byte, except that line breaks in it become spaces.
type Remote struct {
	cfg    RemoteConfig
	client *http.Client

	lines         chan []byte
	closing, done chan struct{}
	close         sync.Once
	all           sync.WaitGroup
	out           *io.PipeReader
	in            *io.PipeWriter

	mu sync.Mutex
	// session is the server's, and version what it negotiated. lost means that the server ended the session.
	session, version string
	lost             bool
	// waiting has the exchanges of requests that are not answered, by id, live how many exchanges there are.
	waiting map[string]*exchange
	live    int
	// listening ends the stream of messages that answer nothing.
	listening context.CancelFunc
}

// Connect makes a Remote, which connects at the first message. The caller closes it. It ends with the context, too.
func Connect(ctx context.Context, cfg RemoteConfig) (*Remote, error) {
	if cfg.URL == nil {
		return nil, errors.New("mcpproxy: RemoteConfig.URL is nil")
	}
	for name, value := range cfg.Headers {
		if err := egress.CheckField(name, value); err != nil {
			return nil, fmt.Errorf("mcpproxy: %w", err)
		}
		if slices.Contains([]string{"Accept", "Content-Type", sessionHeader, versionHeader, methodHeader, nameHeader, lastHeader}, http.CanonicalHeaderKey(name)) {
			return nil, fmt.Errorf("mcpproxy: the header %s belongs to the protocol", name)
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	base := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute,
		TLSHandshakeTimeout: ackTime, MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
	}
	r := &Remote{
		cfg: cfg, client: &http.Client{Transport: base, CheckRedirect: egress.SameOrigin},
		lines: make(chan []byte), closing: make(chan struct{}), done: make(chan struct{}), waiting: map[string]*exchange{},
	}
	r.out, r.in = io.Pipe()
	go func() {
		defer close(r.done)
		r.serve(ctx)
		base.CloseIdleConnections()
	}()
	return r, nil
}

// Read implements [io.Reader].
func (r *Remote) Read(p []byte) (int, error) { return r.out.Read(p) }

// Write takes one message. The next one is sent after it.
func (r *Remote) Write(line []byte) (int, error) {
	select {
	case r.lines <- bytes.Clone(line):
		return len(line), nil
	case <-r.closing:
	case <-r.done:
	}
	return 0, io.ErrClosedPipe
}

// Close gives requests some seconds for their answers, and ends the session. Then nothing more can be read.
func (r *Remote) Close() error {
	r.close.Do(func() { close(r.closing) })
	<-r.done
	return nil
}

// serve sends messages in their order, until the remote is closed.
func (r *Remote) serve(ctx context.Context) {
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	for open := true; open; {
		select {
		case line := <-r.lines:
			r.send(life, bytes.TrimRight(line, "\r\n"))
		case <-r.closing:
			open = false
		case <-ctx.Done():
			open = false
		}
	}
	r.mu.Lock()
	if r.listening != nil {
		r.listening()
	}
	r.mu.Unlock()
	timer := time.AfterFunc(endGrace, func() {
		cancel()
		_ = r.in.Close() // what is written waits for a reader
	})
	r.all.Wait()
	timer.Stop()
	r.end(context.WithoutCancel(ctx))
	_ = r.in.Close()
}

// end ends the session.
func (r *Remote) end(ctx context.Context) {
	if r.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	resp, err := r.do(ctx, http.MethodDelete, nil, nil)
	if err != nil {
		r.cfg.Logger.WarnContext(ctx, "the session was not ended", "error", err)
		return
	}
	_ = resp.Body.Close()
}

// send sends one message. It returns when the next one may be sent.
func (r *Remote) send(ctx context.Context, body []byte) {
	if len(bytes.TrimSpace(body)) == 0 {
		return
	}
	if !json.Valid(body) {
		r.cfg.Logger.WarnContext(ctx, "a line of the client that is no message was dropped")
		return
	}
	x := &exchange{ids: map[string]string{}, header: http.Header{}}
	for _, m := range messages(body) {
		x.add(m)
	}
	if len(x.ids) == 0 {
		r.notify(ctx, x, body)
		return
	}
	var wait context.Context
	wait, x.sent = context.WithTimeout(ctx, ackTime)
	own, end := context.WithCancel(ctx)
	x.end = end
	if err := r.admit(x); err != nil {
		x.sent()
		end()
		r.fail(x, err)
		return
	}
	if !x.initialize { // of which the next message needs the answer
		own = httptrace.WithClientTrace(own, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { x.sent() }})
	}
	r.all.Go(func() {
		defer x.sent()
		defer end()
		r.fail(x, r.ask(own, x, body))
		r.mu.Lock()
		r.live--
		r.mu.Unlock()
	})
	<-wait.Done()
}

// admit remembers the requests of an exchange, unless the server cannot get them now.
func (r *Remote) admit(x *exchange) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.live >= MaxRequests:
		return fmt.Errorf("more than %d requests wait for an answer; wait, or cancel some", MaxRequests)
	case x.initialize: // the client begins a session
		r.session, r.version, r.lost = "", "", false
		if r.listening != nil {
			r.listening()
		}
	case r.lost:
		return errLost
	}
	for key := range maps.Keys(x.ids) {
		r.waiting[key] = x
	}
	r.live++
	return nil
}

// notify sends messages without an answer, and waits until the server has accepted them.
func (r *Remote) notify(ctx context.Context, x *exchange, body []byte) {
	wait, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	resp, err := r.do(wait, http.MethodPost, body, x.header)
	if err == nil {
		defer resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			err = r.refused(wait, resp, x)
		}
	}
	if err != nil {
		r.cfg.Logger.WarnContext(ctx, "the server did not accept a message", "server", r.origin(), "error", err)
	}
	for _, key := range x.cancels {
		r.settle(key, "")
	}
	if err == nil && x.initialized {
		r.listen(ctx)
	}
}

// settle forgets a request that is answered or cancelled; the answer to initialize has a version. The stream may bring more for a moment.
func (r *Remote) settle(key, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.waiting[key]
	if x == nil {
		return
	}
	delete(r.waiting, key)
	delete(x.ids, key)
	if x.initialize && visible(version) {
		r.version = version
	}
	if len(x.ids) == 0 {
		x.sent()
		time.AfterFunc(linger, x.end)
	}
}

// origin names the server.
func (r *Remote) origin() string { return r.cfg.URL.Scheme + "://" + r.cfg.URL.Host }
