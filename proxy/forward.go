package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// hopByHop are headers of one connection.
func hopByHop() []string {
	return []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}
}

// forwardable copies headers but those of the connection.
func forwardable(h http.Header) http.Header {
	out := h.Clone()
	for _, line := range h.Values("Connection") {
		for name := range strings.SplitSeq(line, ",") {
			out.Del(textproto.TrimString(name))
		}
	}
	for _, name := range hopByHop() {
		out.Del(name)
	}
	out.Del(tokenHeader)
	return out
}

// forward sends the request and relays the answer. A request on which nothing acts is sent while its lane is found.
func (x *exchange) forward(ctx context.Context, w http.ResponseWriter) {
	prepared := make(chan struct{})
	prepare := func() {
		defer close(prepared)
		x.guarded(ctx, func() { x.prepare(ctx) })
	}
	send := x.sendRaw
	if x.s.acts && x.why == "" {
		prepare()
		if x.refusal != "" {
			x.release()
			fail(w, x.proto, http.StatusForbidden, x.refusal)
			return
		}
		send = func(ctx context.Context) (*http.Response, error) { return x.post(ctx, nil) }
	} else {
		go prepare()
	}
	resp, err := send(ctx) //nolint:bodyclose // closed by respond
	<-prepared
	defer x.release()
	if err != nil {
		x.s.unreachable(w, x.r, err)
		return
	}
	x.respond(ctx, w, resp)
}

// forwardOnly sends the request and copies the answer.
func (x *exchange) forwardOnly(ctx context.Context, w http.ResponseWriter) {
	resp, err := x.post(ctx, nil)
	if err != nil {
		x.s.unreachable(w, x.r, err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	x.s.relayRaw(w, resp, nil)
}

// post sends what became of the request, or another body.
func (x *exchange) post(ctx context.Context, body []byte) (*http.Response, error) {
	if body == nil && !x.acted {
		return x.sendRaw(ctx)
	}
	if body == nil {
		body = x.body
	}
	return x.s.sendBytes(ctx, x.r, x.up, body, int64(len(body)), true)
}

// sendRaw sends the request as it came.
func (x *exchange) sendRaw(ctx context.Context) (*http.Response, error) {
	return x.s.sendBytes(ctx, x.r, x.up, x.raw, x.r.ContentLength, false)
}

// respond relays the answer.
func (x *exchange) respond(ctx context.Context, w http.ResponseWriter, resp *http.Response) {
	if resp.StatusCode == http.StatusBadRequest && x.ln != nil && x.why == "" {
		resp = x.fallBack(ctx, x.overflow(ctx, resp))
	}
	defer func() { _ = resp.Body.Close() }()
	x.guarded(ctx, func() { x.plan = x.planner() })
	if x.refusal != "" {
		fail(w, x.proto, http.StatusForbidden, x.refusal)
		return
	}
	transforms := x.gates || x.replaces || len(x.hidden) > 0
	if !transforms {
		x.raw, x.body, x.req = nil, nil, nil // streams are long, and bodies large: only a plan keeps one
	}
	switch {
	case resp.StatusCode/100 != 2: // a gate is passed by no other status of success
		if resp.StatusCode == http.StatusTooManyRequests {
			x.s.rateLimited(x.s.credential(x.r.Header))
		}
		x.s.stats.upstreamErrors.Add(1)
		x.s.relayRaw(w, resp, nil)
	case transforms:
		x.transform(ctx, w, resp)
	default:
		x.observe(ctx, w, resp)
	}
}

// send makes the request to the upstream. The answer's body is the caller's to close.
func (s *Server) send(ctx context.Context, r *http.Request, up *upstream, body io.Reader, length int64, plain bool) (*http.Response, error) {
	out, err := s.outgoing(ctx, r, up, body, length, plain)
	if err != nil {
		return nil, err
	}
	return s.cfg.Transport.RoundTrip(out)
}

// outgoing is a request as the upstream gets it.
func (s *Server) outgoing(ctx context.Context, r *http.Request, up *upstream, body io.Reader, length int64, plain bool) (*http.Request, error) {
	if length == 0 {
		body = http.NoBody
	}
	out, err := http.NewRequestWithContext(ctx, r.Method, up.url(r), body)
	if err != nil {
		return nil, err
	}
	out.ContentLength = length
	out.Header = forwardable(r.Header)
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = nil // else the transport sends its own
	}
	out.Header.Del("Content-Length")
	if plain {
		out.Header.Del("Content-Encoding")
	}
	up.authorize(out.Header)
	return out, nil
}

// payload is the body of a request to an upstream. It drops its bytes once they are sent: the transport keeps a request as long as its answer
// takes.
type payload struct{ rest atomic.Pointer[bytes.Reader] }

func newPayload(b []byte) *payload {
	p := &payload{}
	p.rest.Store(bytes.NewReader(b))
	return p
}

// Read implements io.Reader.
func (p *payload) Read(b []byte) (int, error) {
	if r := p.rest.Load(); r != nil {
		return r.Read(b)
	}
	return 0, io.ErrClosedPipe
}

// Close implements io.Closer.
func (p *payload) Close() error {
	p.rest.Store(nil)
	return nil
}

// sendBytes is send for a body that is in memory, which is sent again where a connection turns out to be closed.
func (s *Server) sendBytes(ctx context.Context, r *http.Request, up *upstream, body []byte, length int64, plain bool) (*http.Response, error) {
	out, err := s.outgoing(ctx, r, up, newPayload(body), length, plain)
	if err != nil {
		return nil, err
	}
	var again atomic.Pointer[[]byte]
	again.Store(&body)
	out.GetBody = func() (io.ReadCloser, error) {
		if b := again.Load(); b != nil {
			return newPayload(*b), nil
		}
		return nil, io.ErrClosedPipe
	}
	defer again.Store(nil)
	return s.cfg.Transport.RoundTrip(out)
}

// pass forwards a request whose body is not read here.
func (s *Server) pass(w http.ResponseWriter, r *http.Request, up *upstream, body io.Reader, length int64) {
	// Without this the server closes the request's body with the first byte of the answer, and the transport, which may
	// not have seen its end yet, the connection to an upstream that answers at once.
	_ = http.NewResponseController(w).EnableFullDuplex()
	resp, err := s.send(r.Context(), r, up, body, length, false)
	if err != nil {
		s.unreachable(w, r, err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	s.relayRaw(w, resp, nil)
}

// unreachable answers when there is no answer of the upstream.
func (s *Server) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	s.stats.unreachable.Add(1)
	s.cfg.Logger.WarnContext(r.Context(), "upstream_unreachable", "error", withoutURL(err))
	p, _ := wire.ProtocolOf(r.URL.Path)
	fail(w, p, http.StatusBadGateway, "mortise: the upstream cannot be reached: "+withoutURL(err).Error())
}

// withoutURL leaves out the address, whose query may hold a key.
func withoutURL(err error) error {
	if u := errors.Unwrap(err); u != nil && strings.Contains(err.Error(), "?") {
		return u
	}
	return err
}

// buffers are for copying.
var buffers = sync.Pool{New: func() any { return new([copySize]byte) }} //nolint:gochecknoglobals // as in httputil

const copySize = 16 << 10

// head copies status and headers of an answer.
func head(w http.ResponseWriter, resp *http.Response, acted bool) {
	h := w.Header()
	maps.Copy(h, forwardable(resp.Header))
	if acted {
		h.Del("Content-Length")
		h.Del("Content-Encoding")
	}
	if _, ok := h["Date"]; !ok {
		h["Date"] = nil
	}
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil
	}
	w.WriteHeader(resp.StatusCode)
}

// relayRaw copies an answer as it comes. See gets what was written, after it was.
func (s *Server) relayRaw(w http.ResponseWriter, resp *http.Response, see func([]byte)) {
	head(w, resp, false)
	s.copyBody(w, resp, see)
}

// copyBody copies a body and flushes each piece. An upstream that breaks off breaks the answer off.
func (s *Server) copyBody(w http.ResponseWriter, resp *http.Response, see func([]byte)) {
	flush := http.NewResponseController(w)
	if resp.ContentLength < 0 {
		_ = flush.Flush()
	}
	buf, _ := buffers.Get().(*[copySize]byte)
	defer buffers.Put(buf)
	for {
		n, err := resp.Body.Read(buf[:])
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				panic(http.ErrAbortHandler)
			}
			if resp.ContentLength < 0 {
				_ = flush.Flush()
			}
			if see != nil {
				see(buf[:n])
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			s.stats.cuts.Add(1)
			panic(http.ErrAbortHandler)
		}
	}
}

// readBody reads the body of a request, as far as it is held. More is what did not fit.
func readBody(r *http.Request, limit int64) (body []byte, more bool, err error) {
	var b bytes.Buffer
	if r.ContentLength > 0 && r.ContentLength <= limit {
		b.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(r.Body, limit+1))
	return b.Bytes(), n > limit, err
}
