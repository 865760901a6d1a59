package serve

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

type lettersInput struct {
	After string `query:"after" maxLength:"1024" doc:"What next was in the page before."`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"100"`
}

type letter struct {
	DispatchID string    `json:"dispatch_id"`
	ThreadID   string    `json:"thread_id"`
	RunID      string    `json:"run_id"`
	Attempts   int       `json:"attempts"`
	Error      string    `json:"error,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	DeadAt     time.Time `json:"dead_at"`
}

type lettersOutput struct {
	Body struct {
		Letters []letter `json:"dead_letters"`
		Next    string   `json:"next,omitempty" doc:"What after is for the next page. Without it there is none."`
	}
}

func (s *Server) deadLetters(ctx context.Context, in *lettersInput) (*lettersOutput, error) {
	at, id, err := parseCursor(in.After)
	if err != nil {
		return nil, err
	}
	after := mailbox.Dispatch{UpdatedAt: at, ID: id}
	list, err := s.box().DeadLetters(ctx, after, in.Limit+1)
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	out := &lettersOutput{}
	if len(list) > in.Limit {
		list = list[:in.Limit]
		out.Body.Next = cursorOf(list[in.Limit-1].UpdatedAt, list[in.Limit-1].ID)
	}
	out.Body.Letters = []letter{}
	for i := range list {
		d := &list[i]
		out.Body.Letters = append(out.Body.Letters, letter{
			DispatchID: d.ID, ThreadID: d.Thread, RunID: d.RunID, Attempts: d.Attempts, Error: d.LastError, CreatedAt: d.CreatedAt, DeadAt: d.UpdatedAt,
		})
	}
	return out, nil
}

// cursorOf is the place after something in a listing by time.
func cursorOf(at time.Time, id string) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", at.UnixMilli(), id))
}

func parseCursor(cursor string) (at time.Time, id string, err error) {
	if cursor == "" {
		return at, "", nil
	}
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	ms, id, found := strings.Cut(string(data), " ")
	n, bad := strconv.ParseInt(ms, 10, 64)
	if err != nil || bad != nil || !found || id == "" {
		return at, "", problem(http.StatusUnprocessableEntity, "it is no place in the list", "use next of the page before").about("query.after")
	}
	return time.UnixMilli(n).UTC(), id, nil
}

type letterInput struct {
	Dispatch string `path:"dispatch" maxLength:"256"`
}

type replayOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     submitted
}

func (s *Server) replay(ctx context.Context, in *letterInput) (*replayOutput, error) {
	sub, err := s.box().Replay(ctx, in.Dispatch)
	if err != nil {
		return nil, s.failureOf(ctx, err, "dead letter", in.Dispatch)
	}
	s.cfg.Logger.InfoContext(ctx, "dead_letter_replayed", "run_id", sub.Run, "thread_id", sub.Thread, "dispatch_id", sub.Dispatch, "caller", callerOf(ctx))
	return &replayOutput{Status: http.StatusAccepted, Location: runPath(sub.Run), Body: submitted{
		RunID: sub.Run, ThreadID: sub.Thread, DispatchID: sub.Dispatch, Status: string(mailbox.RunCreated),
	}}, nil
}

func (s *Server) discard(ctx context.Context, in *letterInput) (*struct{}, error) {
	if err := s.box().Discard(ctx, in.Dispatch); err != nil {
		return nil, s.failureOf(ctx, err, "dead letter", in.Dispatch)
	}
	s.cfg.Logger.InfoContext(ctx, "dead_letter_discarded", "dispatch_id", in.Dispatch, "caller", callerOf(ctx))
	return nil, nil
}
