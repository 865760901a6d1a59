package serve

import (
	"context"
	"io"
	"net/http"
)

type reloadOutput struct {
	Body struct {
		Reloaded bool     `json:"reloaded"`
		Changed  []string `json:"changed" doc:"Keys of the configuration and modules that have changed."`
	}
}

func (s *Server) reload(ctx context.Context, _ *struct{}) (*reloadOutput, error) {
	changed, err := s.cfg.Reload(ctx)
	if err != nil {
		return nil, s.refusal(ctx, err, "the configuration")
	}
	s.cfg.Logger.InfoContext(ctx, "configuration_reloaded", "caller", callerOf(ctx))
	out := &reloadOutput{}
	out.Body.Reloaded, out.Body.Changed = true, append([]string{}, changed...)
	return out, nil
}

type drainOutput struct {
	Body struct {
		Executing int `json:"executing" doc:"Runs that this process still executes."`
	}
}

func (s *Server) drain(ctx context.Context, _ *struct{}) (*drainOutput, error) {
	s.cfg.Logger.InfoContext(ctx, "drain_requested", "caller", callerOf(ctx))
	if err := s.stop(ctx); err != nil {
		return nil, s.failure(ctx, err)
	}
	out := &drainOutput{}
	out.Body.Executing = len(s.box().Executing())
	return out, nil
}

// probes are the routes for machines.
func (s *Server) probes(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if p := s.ready(r.Context()); p != nil {
			p.write(w)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	if s.cfg.Metrics == nil {
		return
	}
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if _, p := s.permit(r, ScopeRead); p != nil {
			p.write(w)
			return
		}
		s.cfg.Metrics.ServeHTTP(w, r)
	})
}

func (s *Server) ready(ctx context.Context) *Problem {
	if s.isDraining() {
		return draining()
	}
	if s.box().Health() != nil { // the mailbox has logged it
		return problem(http.StatusServiceUnavailable, "the store cannot be used", "see the log").later(1)
	}
	if s.cfg.Ready != nil {
		if err := s.cfg.Ready(ctx); err != nil {
			_ = s.failure(ctx, err) // logged
			return problem(http.StatusServiceUnavailable, "the server is not ready", "see its log").later(1)
		}
	}
	return nil
}
