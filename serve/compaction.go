package serve

import (
	"context"
	"fmt"
	"net/http"

	"github.com/mortise-dev/mortise/compaction"
)

type compactionsOutput struct {
	Body struct {
		Total    int                  `json:"total" doc:"How many there were, also those that were undone."`
		InFlight *compaction.InFlight `json:"in_flight,omitempty"`
		Markers  []compaction.Marker  `json:"markers" doc:"Those that can be undone, oldest first."`
		Events   []compaction.Event   `json:"events" doc:"What happened, oldest first."`
	}
}

func (s *Server) compactions(ctx context.Context, in *threadInput) (*compactionsOutput, error) {
	if _, err := s.head(ctx, in.Thread); err != nil {
		return nil, err
	}
	state, _, err := s.cfg.Sessions.State(ctx, in.Thread)
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	events, err := s.cfg.Sessions.Events(ctx, in.Thread)
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	out := &compactionsOutput{}
	out.Body.Total, out.Body.InFlight = state.Total, state.InFlight
	out.Body.Markers = append([]compaction.Marker{}, state.Markers...)
	out.Body.Events = append([]compaction.Event{}, events...)
	return out, nil
}

type compactInput struct {
	Thread string `path:"thread" maxLength:"256"`
	Body   struct {
		Focus string `json:"focus,omitempty" maxLength:"4096" doc:"What the summary should keep above all."`
	}
}

type compactOutput struct {
	Body struct {
		Requested bool   `json:"requested"`
		Pending   bool   `json:"pending" doc:"Whether a compaction is under way already."`
		Begins    string `json:"begins" enum:"next_step,next_run" doc:"When the next request to the model decides about it: in the run under way, or, as the thread is idle, in its next run."`
	}
}

func (s *Server) compact(ctx context.Context, in *compactInput) (*compactOutput, error) {
	h, err := s.head(ctx, in.Thread)
	if err != nil {
		return nil, err
	}
	c, out := s.cfg.Runtime.Compactor(), &compactOutput{}
	out.Body.Requested, out.Body.Pending = true, c.Pending(in.Thread)
	if out.Body.Begins = "next_run"; h.Claim != nil {
		out.Body.Begins = "next_step"
	}
	c.Request(in.Thread, in.Body.Focus)
	return out, nil
}

func (s *Server) undo(ctx context.Context, in *threadInput) (*struct{}, error) {
	if _, err := s.head(ctx, in.Thread); err != nil {
		return nil, err
	}
	if !s.cfg.Runtime.Compactor().Undo(in.Thread) {
		if state, _, err := s.cfg.Sessions.State(ctx, in.Thread); err == nil && state.Dropped > 0 {
			return nil, problem(http.StatusConflict, fmt.Sprintf("retention has dropped the content of %d messages that the compaction covers, so it cannot be undone", state.Dropped), "")
		}
		return nil, problem(http.StatusConflict, "there is no compaction that can be undone", "")
	}
	s.cfg.Logger.InfoContext(ctx, "compaction_undone", "thread_id", in.Thread, "caller", callerOf(ctx))
	return nil, nil
}
