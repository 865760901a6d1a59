package program

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/proxy"
)

// proxyListener forwards agents' requests in mortise serve. A reload replaces its server; a request ends with the one with which it began.
type proxyListener struct {
	mu   sync.RWMutex
	now  *proxy.Server
	busy *sync.WaitGroup
}

// server returns the live server and a function that ends its use.
func (l *proxyListener) server() (*proxy.Server, func()) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	l.busy.Add(1)
	return l.now, l.busy.Done
}

// ServeHTTP implements http.Handler.
func (l *proxyListener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s, done := l.server()
	defer done()
	s.ServeHTTP(w, r)
}

// report is that of the live server.
func (l *proxyListener) report() *proxy.Report {
	s, done := l.server()
	defer done()
	return s.Report()
}

// replace returns a channel that is closed when no request uses the replaced server. A nil listener has none.
func (l *proxyListener) replace(next *proxy.Server) <-chan struct{} {
	idle := make(chan struct{})
	if l == nil {
		close(idle)
		return idle
	}
	l.mu.Lock()
	busy := l.busy
	l.now, l.busy = next, &sync.WaitGroup{}
	l.mu.Unlock()
	go func() {
		busy.Wait()
		close(idle)
	}()
	return idle
}

// with returns a server for another config, which replace makes live. A nil listener returns nil.
func (l *proxyListener) with(next *current, p *Program) (*proxy.Server, error) {
	if l == nil {
		return nil, nil //nolint:nilnil // there is no proxy
	}
	cfg, err := next.cfg.ProxyConfig(next.parts, p.records)
	if err != nil {
		return nil, err
	}
	cfg.Logger = p.logger
	return l.now.With(cfg) // reloads are serial
}

// openProxy opens the proxy if the config has a listener for it.
func (p *Program) openProxy(ctx context.Context) error {
	if p.Cfg.Serve.Proxy == "" {
		return nil
	}
	cfg, err := p.Cfg.ProxyConfig(p.now.Load().parts, p.records) //nolint:contextcheck // records are written in the background
	if err != nil {
		return err
	}
	cfg.Logger = p.logger
	s, err := proxy.New(ctx, cfg)
	if err != nil {
		return err
	}
	p.proxy = &proxyListener{now: s, busy: &sync.WaitGroup{}}
	return p.telemetry.registry.Register(&ProxyMetrics{Report: p.proxy.report})
}

// serveProxy listens for agents. Without a proxy there is no server.
func (p *Program) serveProxy(ctx context.Context, failed chan<- error) (*http.Server, net.Addr, error) {
	l, err := Listen(ctx, "serve.proxy", p.Cfg.Serve.Proxy)
	if err != nil {
		return nil, nil, err
	}
	server := &http.Server{Handler: p.proxy, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 256 << 10}
	p.listeners.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("proxy: %w", err)
		}
	})
	return server, l.Addr(), nil
}
