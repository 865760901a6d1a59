package serve

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
)

// guard is what each request passes before its route.
func (s *Server) guard(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := newWriter(w, s.cfg.Limits.Write)
		defer s.recovered(out, r)
		r = r.WithContext(context.WithValue(r.Context(), accessKey{}, s.access.Load()))
		if p := s.admit(out, r); p != nil {
			p.write(out)
			return
		}
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			out.WriteHeader(http.StatusNoContent)
			return
		}
		if _, pattern := mux.Handler(r); pattern == "" || r.Method == http.MethodHead { // a stream has no head alone
			noRoute(mux, r).write(out)
			return
		}
		mux.ServeHTTP(out, r)
	})
}

func (s *Server) recovered(w *writer, r *http.Request) {
	switch v := recover(); v {
	case nil:
	case http.ErrAbortHandler:
		panic(v)
	default:
		s.cfg.Logger.ErrorContext(r.Context(), "request_panicked", "method", r.Method, "panic", v, "stack", string(debug.Stack()))
		if !w.wrote {
			problem(http.StatusInternalServerError, "the server failed", "see its log").write(w)
		}
	}
}

// admit refuses requests of web pages that may not use the API, and without tokens all that do
// not come from this machine.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) *Problem {
	h, a := w.Header(), accessIn(r.Context())
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	listed := origin != "" && slices.Contains(a.origins, origin)
	if listed {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "Location, Retry-After")
		h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Last-Event-ID")
		h.Set("Access-Control-Max-Age", "600")
	}
	preflight := r.Method == http.MethodOptions
	if !a.open() && !preflight {
		return nil // a page of another origin has no token
	}
	switch {
	case origin != "" && !listed && !ownOrigin(origin, r.Host), origin == "" && crossSite(r):
		return problem(http.StatusForbidden, "the request comes from a web page of another origin", "add its origin to the configured ones")
	case preflight && !a.open():
		return nil
	case !localPeer(r):
		return problem(http.StatusForbidden, "without tokens only clients on this machine are served", "configure tokens")
	case !a.ownHost(r.Host):
		return problem(http.StatusForbidden, "the server is not known under this host name", "use localhost, or add the name to the configured hosts")
	}
	return nil
}

// crossSite reports whether a browser sent the request for a page of another origin.
func crossSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

func ownOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

func validOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Scheme != "" && u.Host != "" && origin == u.Scheme+"://"+u.Host
}

// localPeer reports whether a client is on this machine, and no proxy for others.
func localPeer(r *http.Request) bool {
	if r.Header.Get("Forwarded") != "" || r.Header.Get("X-Forwarded-For") != "" {
		return false
	}
	if r.RemoteAddr == "" || r.RemoteAddr == "@" {
		return true // a Unix socket
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}

// ownHost refuses the names under which web pages reach this machine by DNS rebinding.
func (a *access) ownHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if addr, err := netip.ParseAddr(name); err == nil && addr.IsLoopback() {
		return true
	}
	return name == "localhost" || slices.ContainsFunc(a.hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

// noRoute is the problem of a request that no route takes.
func noRoute(mux *http.ServeMux, r *http.Request) *Problem {
	var allowed []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = m
		if _, pattern := mux.Handler(other); pattern != "" {
			allowed = append(allowed, m)
		}
	}
	if len(allowed) == 0 {
		return problem(http.StatusNotFound, "there is no such route", "GET /openapi.json lists the routes")
	}
	p := problem(http.StatusMethodNotAllowed, "the route does not take "+r.Method, "it takes "+strings.Join(allowed, ", "))
	p.allow = strings.Join(allowed, ", ")
	return p
}
