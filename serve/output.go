package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/mortise-dev/mortise/blob"
)

type outputInput struct {
	Thread string `path:"thread" maxLength:"256"`
	Handle string `path:"handle" maxLength:"256"`
	Offset int64  `query:"offset" minimum:"0" doc:"Where the page begins, in bytes."`
	Limit  int    `query:"limit" minimum:"1" maximum:"1048576" default:"65536" doc:"How many bytes the page has at most."`
}

type outputOutput struct {
	Body struct {
		Text   string `json:"text" doc:"Whole characters."`
		Offset int64  `json:"offset"`
		Next   int64  `json:"next,omitempty" doc:"What offset is for the next page. Without it this was the last."`
		Total  int64  `json:"total" doc:"The size of the whole output in bytes."`
	}
}

// output reads a part of a large output of a tool or a background task, by the handle that the messages have.
func (s *Server) output(ctx context.Context, in *outputInput) (*outputOutput, error) {
	p, err := s.cfg.Runtime.Outputs().Read(ctx, in.Thread, in.Handle, in.Offset, in.Limit)
	if errors.Is(err, blob.ErrUnknown) {
		return nil, problem(http.StatusNotFound, fmt.Sprintf("this thread has no output %.260q", in.Handle), "")
	}
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	out := &outputOutput{}
	out.Body.Text, out.Body.Offset, out.Body.Next, out.Body.Total = p.Text, p.Offset, p.Next, p.Total
	return out, nil
}
