package proxy

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// Server forwards requests. Make one with [New]. It is safe for concurrent use.
type Server struct {
	*shared

	cfg Config
	// acts means that something may change a request: plugins, compactions, or what they have changed of a conversation before.
	acts bool
}

// shared is what servers of one proxy have in common: see [Server.With].
type shared struct {
	lanes  *lane.Set
	secret []byte
	stats  counters
	slots  chan struct{} // compactions
	keys   keys
	// billed is what compactions cost of late, in units for each token that was summarized.
	billed atomic.Pointer[float64]

	ctx    context.Context //nolint:containedctx // of goroutines, ended by Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	closed atomic.Bool
	told   sync.Map // kinds of requests of which it was logged that plugins do not see them
}

// New checks a config and returns a server. The caller closes it.
func New(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.withDefaults(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, shared: &shared{secret: []byte(rand.Text()), keys: keys{uses: map[string][]*use{}, limited: map[string]bool{}}}}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.acts = cfg.acts()
	lanes := lane.Config{Now: cfg.Now, Failed: func(err error) {
		s.stats.storeFailures.Add(1)
		s.cfg.Logger.WarnContext(s.ctx, "proxy_store_failed", "error", err)
	}}
	lanes.Store, lanes.Listed = cfg.Store, cfg.Listed
	s.lanes = lane.NewSet(lanes)
	var err error
	if s.secret, err = s.lanes.Secret(ctx, s.secret); err != nil {
		return nil, err
	}
	if cfg.Compaction != nil {
		s.slots = make(chan struct{}, cfg.Compaction.Concurrent)
	}
	s.tasks.Go(s.trim)
	s.logScope(ctx)
	return s, nil
}

// logScope logs at load what gates cannot do here.
func (s *Server) logScope(ctx context.Context) {
	if rt := s.cfg.Runtime; rt != nil && rt.CanRewrite() {
		s.cfg.Logger.WarnContext(ctx, "proxy_provider_tools_not_gated", "hint", "tools that run at the provider, as web search, are seen by gates and not blocked: switch them off in the agent")
	}
	if plugin := s.closedAt(abi.RunStart, abi.StepStart, abi.BeforeInference, abi.AfterToolExecute); plugin != "" {
		s.cfg.Logger.WarnContext(ctx, "proxy_media_not_seen", "plugin", plugin, "hint", "images, PDFs and audio in messages and results pass unseen: plugins read texts alone")
	}
	if plugin := s.failsClosed(); plugin != "" {
		s.cfg.Logger.InfoContext(ctx, "proxy_refuses_ungated", "plugin", plugin, "hint", "what plugins cannot see, as batches and files, is refused: "+hintUngated)
	}
}

// With returns a server with another config that continues the lanes of s. Store, Keep, Now and the number of compactions
// are those of s. Requests that s has begun end with its config. One Close closes both.
func (s *Server) With(cfg Config) (*Server, error) {
	cfg.Store, cfg.Keep, cfg.Now = s.cfg.Store, s.cfg.Keep, s.cfg.Now
	cfg.Transport = cmp.Or(cfg.Transport, s.cfg.Transport)
	if err := cfg.withDefaults(); err != nil {
		return nil, err
	}
	if (cfg.Compaction == nil) != (s.cfg.Compaction == nil) {
		return nil, errors.New("proxy: Config.Compaction: cannot be turned on or off while lanes continue")
	}
	next := &Server{cfg: cfg, shared: s.shared, acts: s.acts || cfg.acts()}
	next.logScope(s.ctx)
	return next, nil
}

// Close ends compactions and waits for them. Requests under way are the HTTP server's.
func (s *Server) Close(ctx context.Context) error {
	if s.closed.Swap(true) {
		return nil
	}
	s.cancel()
	done := make(chan struct{})
	go func() {
		s.tasks.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("proxy: close: %w", context.Cause(ctx))
	}
}

// restEvery is how often the texts of conversations are dropped from memory that were not used since, and trimEvery how often threads are
// deleted that were not used for long.
const restEvery, trimEvery = 10 * time.Minute, time.Hour

func (s *Server) trim() {
	tick := time.NewTicker(restEvery)
	defer tick.Stop()
	for n := 0; s.ctx.Err() == nil; n++ {
		now := s.cfg.Now()
		s.lanes.Rest(now.Add(-restEvery))
		if s.cfg.Store != nil && n%int(trimEvery/restEvery) == 0 {
			if err := s.lanes.Trim(s.ctx, now.Add(-s.cfg.Keep)); err != nil && s.ctx.Err() == nil {
				s.cfg.Logger.WarnContext(s.ctx, "proxy_trim_failed", "error", err)
			}
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
		}
	}
}

// tokenHeader has the token of a client that is not on this machine.
const tokenHeader = "X-Mortise-Token"

// ServeHTTP forwards one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.stats.requests.Add(1)
	s.stats.active.Add(1)
	defer s.stats.active.Add(-1)
	defer s.recovered(r)
	p, _ := wire.ProtocolOf(r.URL.Path)
	if hint := s.admit(r); hint != "" {
		fail(w, p, http.StatusForbidden, "mortise: "+hint)
		return
	}
	if r.Header.Get("Upgrade") != "" && strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade") {
		w.Header().Set("Connection", "close")
		fail(w, p, http.StatusUpgradeRequired, "mortise: use HTTP; this proxy relays no upgraded connections")
		return
	}
	up, err := s.route(r)
	if err != nil {
		fail(w, p, http.StatusBadGateway, "mortise: "+err.Error())
		return
	}
	p, counts := wire.ProtocolOf(up.target())
	if r.Method == http.MethodPost && p != "" {
		s.model(w, r, up, p, counts)
		return
	}
	s.other(w, r, up)
}

// recovered breaks off the answer to a request that panicked.
func (s *Server) recovered(r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint,err113 // a value of a panic
		panic(v)
	}
	s.stats.panics.Add(1)
	s.cfg.Logger.ErrorContext(r.Context(), "proxy_panicked", "panic", v, "stack", string(debug.Stack()))
	panic(http.ErrAbortHandler)
}

// admit returns why a request is refused.
func (s *Server) admit(r *http.Request) string {
	if s.cfg.Token != "" {
		want, got := sha256.Sum256([]byte(s.cfg.Token)), sha256.Sum256([]byte(r.Header.Get(tokenHeader)))
		if subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
			return "the header " + tokenHeader + " has no valid token"
		}
		return ""
	}
	return Foreign(r)
}

// Foreign returns why a request is refused without a token, empty where it is not: it is a web page's, which may have a name of its own for this
// machine, or comes from another machine.
func Foreign(r *http.Request) string {
	if site := r.Header.Get("Sec-Fetch-Site"); r.Header.Get("Origin") != "" || site != "" && site != "none" && site != "same-origin" {
		return "requests of web pages are refused"
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err == nil && !peer.Addr().Unmap().IsLoopback() || r.Header.Get("Forwarded") != "" || r.Header.Get("X-Forwarded-For") != "" {
		return "without a token only clients on this machine are served; set proxy.token"
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	if host != "" && !strings.EqualFold(host, "localhost") && (ip == nil || !ip.IsLoopback()) {
		return "the proxy is not known under this host name; use 127.0.0.1"
	}
	return ""
}
