package providertest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Bounds of a server.
const (
	maxBody  = 32 << 20
	maxAtOne = 256 // requests at one time
)

// Server serves the fakes. The Anthropic API is at its URL, the OpenAI APIs are at URL + "/v1".
type Server struct {
	cfg    Config
	url    string
	secret []byte
	http   http.Server
	slots  chan struct{}
	base   context.Context //nolint:containedctx // of answers in the background, ended by Close
	cancel context.CancelFunc
	closed sync.Once
	done   sync.WaitGroup

	mu    sync.Mutex
	n     int
	bills []Bill
	cache map[digest]entry
	// pairs has the reasoning item that each output item needs before it, and the thinking
	// that came before each tool call, by id.
	pairs map[string]string
	// stored are answers of Responses, by id, and conversations their items.
	stored        map[string]*stored
	conversations map[string]rsItems
}

// New starts a server on a free loopback port. The caller closes it.
func New(cfg Config) (*Server, error) {
	ctx, cancel := context.WithCancel(context.Background()) // Close ends it
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		cancel()
		return nil, fmt.Errorf("providertest: listen: %w", err)
	}
	s := &Server{
		cfg: cfg.withDefaults(), url: "http://" + l.Addr().String(), secret: []byte(rand.Text()), base: ctx, cancel: cancel,
		slots: make(chan struct{}, maxAtOne), cache: map[digest]entry{}, pairs: map[string]string{},
		stored: map[string]*stored{}, conversations: map[string]rsItems{},
	}
	s.http = http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }, ConnState: s.track,
	}
	s.done.Go(func() { _ = s.http.Serve(l) })
	return s, nil
}

// URL returns the root, without a slash at its end.
func (s *Server) URL() string { return s.url }

// Key returns the key that requests must have.
func (s *Server) Key() string { return s.cfg.Key }

// Bills returns the account so far, in the order in which requests ended.
func (s *Server) Bills() []Bill {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bills)
}

// Close ends all requests and waits for them. It may be called more than once.
func (s *Server) Close() error {
	s.closed.Do(func() {
		s.cancel()
		_ = s.http.Close()
	})
	s.done.Wait()
	return nil
}

// track counts connections, whose goroutines outlive their requests.
func (s *Server) track(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.done.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.done.Done()
	case http.StateActive, http.StateIdle:
	}
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, counts := protocolOf(r.URL.Path, r.Header)
	w.Header().Set(p.idHeader, newID("req_"))
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		p.reject(w, &failure{status: http.StatusServiceUnavailable, message: "too many requests at one time"})
		return
	}
	if f := p.authorize(r.Header, s.cfg.Key); f != nil {
		p.reject(w, f)
		return
	}
	switch {
	case s.resource(w, r, p):
	case r.Method == http.MethodGet && r.URL.Path == "/v1/models":
		writeJSON(w, p.models(s.cfg.Models))
	case p.parse == nil:
		p.reject(w, &failure{status: http.StatusNotFound, message: "Not Found"})
	case r.Method != http.MethodPost:
		p.reject(w, &failure{status: http.StatusMethodNotAllowed, message: "Method Not Allowed"})
	default:
		s.post(w, r, p, counts) //nolint:contextcheck // answers in the background outlive their request
	}
}

func (s *Server) post(w http.ResponseWriter, r *http.Request, p *protocol, counts bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		s.rejected(w, p, r, &failure{status: http.StatusRequestEntityTooLarge, message: "Request exceeds the maximum size"})
		return
	}
	if err != nil {
		return // the client is gone
	}
	a, f := p.parse(s, body, counts)
	if f == nil && !counts {
		f = p.overflow(a)
	}
	switch {
	case f != nil && counts:
		p.reject(w, f)
	case f != nil:
		s.rejected(w, p, r, f)
	case counts:
		writeJSON(w, p.count(a.prompt.tokens()))
	default:
		s.answer(w, r, p, a, body)
	}
}

// rejected answers a request that is not accepted, and adds it to the account.
func (s *Server) rejected(w http.ResponseWriter, p *protocol, r *http.Request, f *failure) {
	s.bill(&Bill{API: p.api, Failed: true, IdempotencyKey: r.Header.Get("Idempotency-Key")})
	p.reject(w, f)
}

func (s *Server) bill(b *Bill) {
	b.At = s.cfg.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bills = append(s.bills, *b)
}

// pair remembers what an item of an answer needs before it.
func (s *Server) pair(id, needs string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pairs[id] = needs
}

func (s *Server) paired(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pairs[id]
}

// newID returns an id as the vendors make them.
func newID(prefix string) string { return prefix + rand.Text()[:24] }
