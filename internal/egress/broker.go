package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
)

// Broker makes requests for one plugin. It is safe for concurrent use. The
// caller of New calls Close.
type Broker struct {
	policy    Policy
	hosts     hostSet
	addresses addresses
	vault     *vault
	resolver  Resolver
	rootCAs   *x509.CertPool
	userAgent string
	log       *slog.Logger
	slots     chan struct{}
	rate      *bucket
	bytes     *bucket
	pool      *pool
	stats     *counters

	mu      sync.Mutex
	closed  bool
	running map[*context.CancelCauseFunc]struct{}
}

// Request is what a plugin asks for.
type Request struct {
	// Method defaults to GET. Case does not matter.
	Method string
	// URL is absolute. A fragment is not sent.
	URL string
	// Header may hold handles of secrets in its values. Names in any case.
	Header http.Header
	// Body is not changed, and not used after Do returns.
	Body []byte
}

// Response is what a server answered, without the secrets that it echoed.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	// URL is where the response came from, after redirects.
	URL string
}

// Do makes a request and follows its redirects. It returns when ctx ends, when the
// policy's Timeout is over, or when the broker is closed.
func (b *Broker) Do(ctx context.Context, req Request) (*Response, error) {
	resp, err := b.do(ctx, req)
	b.count(ctx, err)
	if err != nil {
		return nil, err
	}
	return resp, nil
}

func (b *Broker) do(ctx context.Context, req Request) (*Response, error) {
	x, err := b.admit(req)
	if err != nil {
		return nil, b.tell(x, err)
	}
	ctx, end, err := b.begin(ctx)
	if err != nil {
		return nil, b.tell(x, err)
	}
	defer end()
	select {
	case b.slots <- struct{}{}:
		defer func() { <-b.slots }()
	case <-ctx.Done():
		return nil, b.tell(x, b.ended(ctx))
	}
	resp, err := b.follow(ctx, x)
	if err != nil {
		if over := b.ended(ctx); over != nil {
			err = over
		}
		return nil, b.tell(x, err)
	}
	return resp, nil
}

// begin returns a context that Timeout and Close end.
func (b *Broker) begin(ctx context.Context) (context.Context, func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, nil, refuse(ReasonClosed, "", "the broker was closed")
	}
	ctx, timeout := context.WithTimeoutCause(ctx, b.policy.Timeout, errTimeout)
	ctx, cancel := context.WithCancelCause(ctx)
	if b.running == nil {
		b.running = map[*context.CancelCauseFunc]struct{}{}
	}
	key := &cancel
	b.running[key] = struct{}{}
	return ctx, func() {
		b.mu.Lock()
		delete(b.running, key)
		b.mu.Unlock()
		cancel(nil)
		timeout()
	}, nil
}

// Close closes idle connections and ends the requests in progress, which are then
// refused, as are later ones. It may be called more than once.
func (b *Broker) Close() {
	b.mu.Lock()
	b.closed = true
	for cancel := range b.running {
		(*cancel)(errClosed)
	}
	b.mu.Unlock()
	b.vault.close()
	b.pool.close()
}

// tell adds the URL to an error, without its query and without secrets.
func (b *Broker) tell(x *exchange, err error) error {
	at := ""
	if x != nil {
		at = b.vault.redact(x.target.cut())
	}
	r, ok := errors.AsType[*Refusal](err)
	if !ok {
		return fmt.Errorf("egress: %s %s: %w", x.method, at, err)
	}
	r.URL = at
	r.Detail = b.vault.redact(r.Detail)
	if x != nil && x.from != "" {
		r.Detail = "after a redirect from " + b.vault.redact(x.from) + ": " + r.Detail
	}
	return r
}

// count counts and logs how a call ended. A refusal is worth a warning once for each
// reason: a plugin could fill the log otherwise.
func (b *Broker) count(ctx context.Context, err error) {
	r, refused := errors.AsType[*Refusal](err)
	first := false
	b.stats.update(func(s *Stats) {
		s.Requests++
		switch {
		case refused:
			first = s.Refused[r.Reason] == 0
			s.Refused[r.Reason]++
		case err != nil:
			s.Failed++
		}
	})
	if !refused {
		return
	}
	level := slog.LevelDebug
	if first {
		level = slog.LevelWarn
	}
	b.log.Log(ctx, level, "egress request refused", "reason", r.Reason, "host", hostOf(r.URL))
}

// hostOf is the host and port of a URL that cut made.
func hostOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}
