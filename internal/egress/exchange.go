package egress

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
)

// exchange is one call of Do, at the hop that it has come to.
type exchange struct {
	method string
	target target
	// header has handles, not values.
	header http.Header
	body   []byte
	fill   filler
	// hops counts the redirects that were followed, from is the URL before the
	// last one.
	hops int
	from string
}

// admit checks what can be checked without waiting. The exchange is nil or
// incomplete when it fails.
func (b *Broker) admit(req Request) (*exchange, error) {
	if hasHandle(req.URL) {
		return nil, refuse(ReasonSecret, "put the handle into a header", "a secret must not be in the URL")
	}
	t, r := parseTarget(req.URL)
	if r != nil {
		return &exchange{target: t}, r
	}
	x := &exchange{
		method: strings.ToUpper(req.Method), target: t, body: req.Body,
		fill: filler{vault: b.vault, values: map[string]string{}, limit: b.policy.HeaderBytes},
	}
	if x.method == "" {
		x.method = http.MethodGet
	}
	if r := b.permit(x); r != nil {
		return x, r
	}
	if len(req.Body) > b.policy.RequestBytes {
		return x, refuse(ReasonRequestTooLarge, "send less, or ask the operator to raise Policy.RequestBytes",
			"the body has %d bytes and may have %d", len(req.Body), b.policy.RequestBytes)
	}
	if x.header, r = b.screenHeader(req.Header, t, len(req.Body)); r != nil {
		return x, r
	}
	if r := b.vault.screenAll(x.header, t); r != nil {
		return x, r
	}
	return x, nil
}

// permit checks scheme, host, address and method of a hop against the policy.
func (b *Broker) permit(x *exchange) *Refusal {
	t := x.target
	if t.scheme == "http" && !b.policy.Plain {
		return refuse(ReasonScheme, "use https, or ask the operator to grant Policy.Plain", "http is not granted")
	}
	ok, named := b.hosts.match(t)
	if !ok {
		return refuse(ReasonHost, "ask the operator to add it to Policy.Hosts", "the host %s is not granted", quote(t.hostPort()))
	}
	if t.addr.IsValid() && !b.addresses.allowed(t.addr, named) {
		return refuse(ReasonAddress, "ask the operator to name it in Policy.Hosts and Policy.Private", "the address is not public")
	}
	if !slices.Contains(b.policy.Methods, x.method) {
		return refuse(ReasonMethod, "ask the operator to grant it in Policy.Methods", "the method %s is not granted", quote(x.method))
	}
	return nil
}

// follow makes the hops of an exchange until one of them answers.
func (b *Broker) follow(ctx context.Context, x *exchange) (*Response, error) {
	for {
		resp, next, err := b.hop(ctx, x)
		if err != nil || next == nil {
			return resp, err
		}
		if err := b.redirect(x, next); err != nil {
			return nil, err
		}
		b.stats.update(func(s *Stats) { s.Redirects++ })
	}
}

// hop makes one request. It returns the response, or where it redirects to.
func (b *Broker) hop(ctx context.Context, x *exchange) (*Response, *redirection, error) {
	if !b.bytes.holds(int64(len(x.body)) + 1) {
		return nil, nil, b.overBudget()
	}
	if !b.rate.take(1) {
		return nil, nil, refuse(ReasonRate, "wait, or ask the operator to raise Policy.PerMinute",
			"more than %d requests in a minute", b.policy.PerMinute)
	}
	header, r := x.fill.fill(ctx, x.header, x.target)
	if r != nil {
		return nil, nil, r
	}
	c, resp, err := b.send(ctx, x, header)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range b.vault.learn(ctx) {
		b.log.WarnContext(ctx, "a secret cannot be read, so responses are not searched for it", "secret", name)
	}
	if err := ctx.Err(); err != nil { // what there is was not searched for all that may become known
		b.release(c, resp, false)
		return nil, nil, err
	}
	if b.policy.Redirects >= 0 && isRedirect(resp) {
		next, err := resp.Location()
		b.release(c, resp, resp.Body == http.NoBody)
		if err != nil {
			return nil, nil, refuse(ReasonMalformed, "", "it redirects to a URL that cannot be read")
		}
		return nil, &redirection{resp.StatusCode, next}, nil
	}
	data, fits, err := body(resp, b.policy.ResponseBytes)
	b.release(c, resp, fits && err == nil)
	switch {
	case !fits && err == nil:
		return nil, nil, b.responseTooLarge()
	case err != nil:
		return nil, nil, b.exchangeError(c)
	}
	out, err := b.answer(x, resp, data)
	return out, nil, err
}

// send sends a request on an idle connection or a new one. An idle one may have
// been closed in this moment; a request that can be repeated is then sent again.
func (b *Broker) send(ctx context.Context, x *exchange, header http.Header) (*conn, *http.Response, error) {
	for {
		c := b.pool.get(x.target.origin())
		reused := c != nil
		if !reused {
			var err error
			if c, err = b.connect(ctx, x.target); err != nil {
				return nil, nil, err
			}
		}
		resp, err := c.roundTrip(ctx, x.request(header), b.policy.HeaderBytes)
		if err == nil {
			return c, resp, nil
		}
		c.finish(nil, false)
		repeat := reused && !c.answered && !c.over.Load() && ctx.Err() == nil && isIdempotent(x.method)
		if !repeat {
			return nil, nil, b.exchangeError(c)
		}
	}
}

// release gives a connection back, or closes it when something of the response is left.
func (b *Broker) release(c *conn, resp *http.Response, done bool) {
	if c.finish(resp, done) {
		b.pool.put(c)
	}
	_ = resp.Body.Close() // reads nothing: the body is at its end, or the connection closed
}

// request is what is written for a hop.
func (x *exchange) request(header http.Header) *http.Request {
	req := &http.Request{
		Method: x.method, URL: x.target.url, Host: x.target.hostPort(),
		Header: header, Body: http.NoBody, ContentLength: int64(len(x.body)),
	}
	if len(x.body) > 0 {
		req.Body = io.NopCloser(bytes.NewReader(x.body))
	}
	return req
}

// answer makes the response for the plugin, without secrets.
func (b *Broker) answer(x *exchange, resp *http.Response, data []byte) (*Response, error) {
	known := b.vault.find()
	coding := resp.Header.Get("Content-Encoding")
	if known != nil && (coding != "" && !strings.EqualFold(coding, "identity") || compressed(data)) {
		return nil, refuse(ReasonSecret, "ask the server for an uncompressed response",
			"the response is compressed, so it cannot be searched for secrets")
	}
	if known != nil && (resp.StatusCode == http.StatusPartialContent || resp.Header.Get("Content-Range") != "") {
		return nil, refuse(ReasonSecret, "leave out the header Range", "the response is a piece of one, so it cannot be searched for secrets")
	}
	out, inBody, ok := redact(data, known, b.policy.ResponseBytes)
	if !ok {
		return nil, b.responseTooLarge()
	}
	inHeader, ok := redactHeader(resp.Header, known, b.policy.HeaderBytes)
	if !ok {
		return nil, refuse(ReasonHeadersTooLarge, "", "the response's headers are larger than %d bytes", b.policy.HeaderBytes)
	}
	if inBody > 0 {
		resp.Header.Del("Content-Length")
	}
	b.stats.update(func(s *Stats) { s.Redacted += int64(inBody + inHeader) })
	return &Response{Status: resp.StatusCode, Header: resp.Header, Body: out, URL: b.vault.redact(x.target.url.String())}, nil
}

func (b *Broker) responseTooLarge() *Refusal {
	return refuse(ReasonResponseTooLarge, "ask for less, or ask the operator to raise Policy.ResponseBytes",
		"the response's body is larger than %d bytes", b.policy.ResponseBytes)
}

// isIdempotent reports methods that may be sent twice, by RFC 9110.
func isIdempotent(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}
