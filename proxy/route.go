package proxy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// upstream is where a request goes.
type upstream struct {
	base *url.URL
	// path is that of the request there.
	path string
	key  string
	// anthropic is the way in which credentials are sent.
	anthropic bool
}

// routePrefix begins paths that name their upstream.
const routePrefix = "/to/"

// accountHeader is that of Codex with a ChatGPT login.
const accountHeader = "Chatgpt-Account-Id"

// route chooses the upstream of a request.
func (s *Server) route(r *http.Request) (*upstream, error) {
	path := r.URL.EscapedPath()
	if path != "" && path[0] != '/' { // it would continue the host
		return nil, errors.New("the path does not begin with a slash")
	}
	if rest, ok := strings.CutPrefix(path, routePrefix); ok {
		name, rest, _ := strings.Cut(rest, "/")
		base, err := parseBase(s.cfg.Routes(name))
		if err != nil {
			return nil, fmt.Errorf("there is no upstream %.64q", name)
		}
		return &upstream{base: base, path: "/" + rest, anthropic: anthropic(r)}, nil
	}
	to, u := s.cfg.OpenAI, &upstream{path: path}
	switch {
	case r.Header.Get(accountHeader) != "":
		to = s.cfg.ChatGPT
		u.path = withoutVersion(path)
	case anthropic(r):
		to, u.anthropic = s.cfg.Anthropic, true
	}
	base, err := parseBase(to.URL)
	if err != nil {
		return nil, err
	}
	u.base, u.key = base, to.Key
	if u.base.Path == "/v1" || strings.HasSuffix(u.base.Path, "/v1") { // a base URL as OpenAI's clients write it
		u.path = withoutVersion(u.path)
	}
	return u, nil
}

// withoutVersion takes the first part of a path off that is /v1. What is left begins with a slash, and so does not continue a host.
func withoutVersion(path string) string {
	if rest, ok := strings.CutPrefix(path, "/v1"); ok && (rest == "" || rest[0] == '/') {
		return rest
	}
	return path
}

// anthropic reports whether a request is for Anthropic's API.
func anthropic(r *http.Request) bool {
	h, p := r.Header, r.URL.Path
	switch {
	case h.Get("Anthropic-Version") != "" || h.Get("X-Api-Key") != "" || h.Get("Anthropic-Beta") != "":
		return true
	case strings.Contains(p, "/v1/messages"), p == "/", strings.HasPrefix(p, "/api/"):
		return true
	}
	return strings.HasPrefix(h.Get("User-Agent"), "claude-")
}

// url is the address of a request there.
func (u *upstream) url(r *http.Request) string {
	out := u.base.Scheme + "://" + u.base.Host + strings.TrimSuffix(u.base.EscapedPath(), "/") + u.path
	if r.URL.RawQuery != "" || r.URL.ForceQuery {
		out += "?" + r.URL.RawQuery
	}
	return out
}

// target is the path of a request there, without escapes.
func (u *upstream) target() string {
	path, err := url.PathUnescape(u.path)
	if err != nil {
		path = u.path
	}
	return strings.TrimSuffix(u.base.Path, "/") + path
}

// authorize sets the operator's key, if there is one.
func (u *upstream) authorize(h http.Header) {
	switch {
	case u.key == "":
	case u.anthropic:
		h.Del("Authorization")
		h.Set("X-Api-Key", u.key)
	default:
		h.Set("Authorization", "Bearer "+u.key)
	}
}

// credential is a keyed hash of what a client authenticates with. Nothing else of it is kept.
func (s *Server) credential(h http.Header) string {
	m := hmac.New(sha256.New, s.secret)
	for _, name := range []string{"Authorization", "X-Api-Key", accountHeader} {
		m.Write([]byte(h.Get(name)))
		m.Write([]byte{0})
	}
	return hex.EncodeToString(m.Sum(nil)[:12])
}

// oauth reports whether a request has an OAuth credential. The header of betas says so for Anthropic's messages alone.
func oauth(h http.Header, messages bool) bool {
	if messages && strings.Contains(strings.Join(h.Values("Anthropic-Beta"), ","), "oauth-") {
		return true
	}
	if h.Get(accountHeader) != "" {
		return false // Codex's login is no matter of integrity values
	}
	return strings.HasPrefix(h.Get("Authorization"), "Bearer sk-ant-oat")
}
