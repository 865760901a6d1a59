package serve

import (
	"context"

	"github.com/mortise-dev/mortise/mailbox"
)

func (s *Server) pauseThread(ctx context.Context, in *threadInput) (*threadOutput, error) {
	h, err := s.box().PauseThread(ctx, in.Thread)
	return s.paused(ctx, in.Thread, &h, err)
}

func (s *Server) resumeThread(ctx context.Context, in *threadInput) (*threadOutput, error) {
	h, err := s.box().ResumeThread(ctx, in.Thread)
	return s.paused(ctx, in.Thread, &h, err)
}

func (s *Server) paused(ctx context.Context, id string, h *mailbox.Thread, err error) (*threadOutput, error) {
	if err != nil {
		return nil, s.failureOf(ctx, err, "thread", id)
	}
	s.cfg.Logger.InfoContext(ctx, "thread_paused", "thread_id", h.ID, "paused", !h.PausedAt.IsZero(), "caller", callerOf(ctx))
	return &threadOutput{Body: viewOf(h)}, nil
}

type pauseInput struct {
	Body struct {
		Tenant string `json:"tenant,omitempty" maxLength:"256" doc:"Whose threads; all if it is left out."`
	}
}

type pauseOutput struct {
	Body struct {
		Paused  bool     `json:"paused" doc:"Whether all threads are paused."`
		Tenants []string `json:"tenants" doc:"The tenants that are paused."`
	}
}

// pause lets no process begin runs of a tenant, or of any.
func (s *Server) pause(ctx context.Context, in *pauseInput) (*pauseOutput, error) {
	return s.pauses(ctx, in.Body.Tenant, true, s.box().Pause(ctx, in.Body.Tenant))
}

func (s *Server) resume(ctx context.Context, in *pauseInput) (*pauseOutput, error) {
	return s.pauses(ctx, in.Body.Tenant, false, s.box().Resume(ctx, in.Body.Tenant))
}

func (s *Server) pauses(ctx context.Context, tenant string, paused bool, err error) (*pauseOutput, error) {
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	s.cfg.Logger.InfoContext(ctx, "queue_paused", "tenant", tenant, "paused", paused, "caller", callerOf(ctx))
	out := &pauseOutput{}
	out.Body.Paused, out.Body.Tenants, err = s.pausedTenants(ctx)
	return out, s.failure(ctx, err)
}

// pausedTenants returns what is paused: whether all are, and which tenants.
func (s *Server) pausedTenants(ctx context.Context) (all bool, tenants []string, err error) {
	list, err := s.box().Pauses(ctx)
	tenants = []string{}
	for _, tenant := range list {
		if all = all || tenant == ""; tenant != "" {
			tenants = append(tenants, tenant)
		}
	}
	return all, tenants, err
}
