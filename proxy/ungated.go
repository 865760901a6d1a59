package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/proxy/wire"
)

const hintUngated = "list paths that are to pass all the same under proxy.ungated"

// other forwards a request that asks no model. A plugin that fails closed refuses what would take around it what it has to see: a batch, a
// file, a stored conversation.
func (s *Server) other(w http.ResponseWriter, r *http.Request, up *upstream) {
	ctx, bare := r.Context(), r.ContentLength == 0
	asked, target := clean(r.URL.Path), strings.ToLower(clean(up.target()))
	if p := fetches(r.Method, target); p != "" && bare {
		s.fetch(w, r, up, p)
		return
	}
	if concealed(target) && (!bare || !slices.Contains([]string{http.MethodHead, http.MethodOptions, http.MethodDelete}, r.Method)) {
		what := r.Method + " " + r.URL.Path
		allowed := slices.ContainsFunc(s.cfg.Ungated, func(pattern string) bool {
			ok, _ := path.Match(pattern, asked)
			return ok
		})
		if plugin := s.failsClosed(); plugin != "" && !allowed {
			s.refuseUngated(ctx, w, shapeOf(up), plugin, what, "send requests one by one to an endpoint that is, or "+hintUngated)
			return
		}
		s.ungated(ctx, "endpoint", what)
	}
	s.pass(w, r, up, r.Body, r.ContentLength)
}

// clean is a path without other spellings, or nothing where a server may read another one out of it.
func clean(at string) string {
	if strings.ContainsAny(at, `%\;`) {
		return ""
	}
	return path.Clean("/" + at)
}

// concealed reports whether requests to a path, in lower case, may have content for a model, or their answers what one wrote, in a form that is not read
// here: of the APIs of Anthropic, OpenAI, Google and AWS. Other paths pass.
func concealed(target string) bool {
	if target == "" || strings.Contains(target, "generatecontent") || strings.Contains(target, "predict") {
		return true
	}
	names := []string{"messages", "complet", "responses", "batches", "files", "uploads", "conversations", "assistants", "threads", "realtime", "invoke", "converse"}
	for part := range strings.SplitSeq(target, "/") {
		part = strings.TrimSpace(part)
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(part, name) }) {
			return true
		}
	}
	return false
}

// fetches returns the protocol of an answer that is fetched behind its request, or nothing: a response that was made in the background or is kept.
func fetches(method, target string) wire.Protocol {
	if method == http.MethodPost {
		if before, ok := strings.CutSuffix(target, "/cancel"); ok {
			method, target = http.MethodGet, before
		}
	}
	if method == http.MethodGet && strings.HasSuffix(path.Dir(target), "/responses") {
		return wire.Responses
	}
	return ""
}

// fetch relays an answer that is fetched behind its request.
func (s *Server) fetch(w http.ResponseWriter, r *http.Request, up *upstream, p wire.Protocol) {
	ctx := r.Context()
	x := &exchange{s: s, r: r, up: up, proto: p, at: s.cfg.Now(), fetched: true}
	if query, err := url.QueryUnescape(r.URL.RawQuery); err != nil || strings.Contains(query, "starting_after") {
		what := r.Method + " " + r.URL.Path + " with starting_after" // calls may have begun before
		if plugin := s.failsClosed(); plugin != "" {
			s.refuseUngated(ctx, w, p, plugin, what, "fetch all of the stream, without starting_after")
			return
		}
		s.ungated(ctx, "starting_after", what)
		x.why = "starting_after" // its usage counts all the same
	}
	x.gates, x.replaces = x.canGate(), x.canReplace()
	resp, err := s.send(ctx, r, up, http.NoBody, 0, false) //nolint:bodyclose // closed by respond
	if err != nil {
		s.unreachable(w, r, err)
		return
	}
	x.respond(ctx, w, resp)
}

// shapeOf is a protocol whose errors an upstream has.
func shapeOf(up *upstream) wire.Protocol {
	if up.anthropic {
		return wire.Messages
	}
	return wire.Responses
}

// refuseUngated answers for a plugin that cannot see a request or its answer.
func (s *Server) refuseUngated(ctx context.Context, w http.ResponseWriter, p wire.Protocol, plugin, what, hint string) {
	s.stats.refused.Add(1)
	s.cfg.Logger.WarnContext(ctx, "ungated_refused", "plugin", plugin, "what", what)
	fail(w, p, http.StatusForbidden, fmt.Sprintf("mortise: %.200s is not gated by plugin %s, which fails closed: %s", what, plugin, hint))
}

// ungated counts what passes plugins unseen, and logs the first of a kind.
func (s *Server) ungated(ctx context.Context, kind, what string) {
	if s.cfg.Runtime == nil {
		return
	}
	s.stats.ungated.Add(1)
	if _, told := s.told.LoadOrStore(kind, true); !told {
		s.cfg.Logger.WarnContext(ctx, "proxy_ungated", "what", fmt.Sprintf("%.200s", what), "hint", "plugins do not see such requests; more of them are counted as ungated")
	}
}
