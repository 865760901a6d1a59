package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mortise-dev/mortise/mailbox"
)

// Problem is an error in a response, as RFC 9457 has it.
//
//nolint:errname // the word of RFC 9457
type Problem struct {
	Type   string `json:"type" doc:"What kind of problem it is: about:blank, the status says all." example:"about:blank"`
	Title  string `json:"title" doc:"The status in words." example:"Unprocessable Entity"`
	Status int    `json:"status" doc:"The HTTP status." example:"422"`
	Detail string `json:"detail,omitempty" doc:"What went wrong." example:"expected string"`
	Hint   string `json:"hint,omitempty" doc:"What to do about it."`
	Field  string `json:"field,omitempty" doc:"Which part of the request it is about." example:"body.agent"`

	retryAfter int
	allow      string // the methods that a route takes
}

func problem(status int, detail, hint string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Hint: hint}
}

func (p *Problem) about(field string) *Problem { p.Field = field; return p }

// later asks the client to try again after some seconds.
func (p *Problem) later(seconds int) *Problem { p.retryAfter = seconds; return p }

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (*Problem) ContentType(string) string { return "application/problem+json" }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="mortise"`)
	}
	return h
}

func (p *Problem) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), p.GetHeaders())
	writeJSON(w, p.Status, p.ContentType(""), p)
}

func writeJSON(w http.ResponseWriter, status int, contentType string, v any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has left
}

// humaProblem makes a Problem of an error that huma made of a request.
func (s *Server) humaProblem(e *huma.ErrorModel) *Problem {
	p := problem(e.Status, e.Detail, "")
	if e.Status >= http.StatusInternalServerError {
		return problem(e.Status, "the server failed", "see its log")
	}
	if len(e.Errors) == 0 {
		return p
	}
	return s.rules.problem(e.Status, e.Errors[0])
}

// problem makes a Problem of what huma says about a part of a request.
func (r *rules) problem(status int, d *huma.ErrorDetail) *Problem {
	p := problem(status, d.Message, "").about(d.Location)
	if place, ok := strings.CutPrefix(d.Message, beforePlace); ok {
		p = problem(http.StatusBadRequest, "a field is there twice, or its name is in another case", "GET /openapi.json lists what the request may have")
		return p.about(place)
	}
	switch {
	case strings.HasPrefix(d.Message, "expected value to match exactly one schema") && strings.HasSuffix(d.Location, "input"):
		if list, ok := d.Value.([]any); ok {
			if inner := r.wrong(r.messages, d.Location, list); inner != nil {
				return r.problem(status, inner)
			}
		}
		p.Detail = "the input is neither a text that is not empty, nor a list of messages"
		p.Hint = `write "input": "TEXT", or "input": [{"role": "user", "content": [{"type": "text", "text": "TEXT"}]}]`
	case strings.HasPrefix(d.Message, "json:"): // it has names of types
		p.Detail = "the body does not fit its schema"
	case strings.HasPrefix(d.Message, "unexpected property"), strings.HasPrefix(d.Message, "unknown query parameter"):
		p.Status, p.Title = http.StatusBadRequest, http.StatusText(http.StatusBadRequest)
		p.Hint = "GET /openapi.json lists what the request may have"
	}
	return p
}

// failure makes a Problem of an error of the mailbox or of what is below it.
func (s *Server) failure(ctx context.Context, err error) error {
	var p *Problem
	switch {
	case err == nil:
		s.outage.Store(false)
		return nil
	case errors.As(err, &p):
		return p
	case errors.Is(err, mailbox.ErrNotFound):
		return problem(http.StatusNotFound, "there is no such object", "it may have been deleted, or be too old")
	case errors.Is(err, mailbox.ErrTooLarge):
		return problem(http.StatusRequestEntityTooLarge, "the request is larger than the queue takes", "")
	case errors.Is(err, mailbox.ErrExists):
		return problem(http.StatusConflict, "the id or the idempotency key belongs to another request", "use a new key for a new request")
	case errors.Is(err, mailbox.ErrConflict):
		return problem(http.StatusConflict, "the object is in another state", "read it, and decide again")
	case errors.Is(err, mailbox.ErrPaused):
		return problem(http.StatusConflict, "the thread, its tenant or the queue is paused", "resume it, or submit with mode background")
	case errors.Is(err, mailbox.ErrBusy):
		return problem(http.StatusConflict, "the thread has a run that does not yield", "wait for it, cancel it, or submit with mode background").later(1)
	case errors.Is(err, mailbox.ErrFull):
		return problem(http.StatusTooManyRequests, "the queue is full", "wait until runs have ended, or cancel some").later(1)
	case errors.Is(err, mailbox.ErrRefused):
		return problem(http.StatusConflict, "the run waits for no such decision", "it was decided before, or never asked for; GET the run to see what it waits for")
	case errors.Is(err, mailbox.ErrInvalid):
		return invalid(err)
	case errors.Is(err, mailbox.ErrShutdown):
		return draining()
	case ctx.Err() != nil:
		return problem(http.StatusRequestTimeout, "the client has left", "")
	}
	if !s.outage.Swap(true) && s.box().Health() == nil { // or the mailbox has logged it
		s.cfg.Logger.WarnContext(ctx, "store_unavailable", "error", err)
	}
	hint := "try again; the request has changed nothing"
	if errors.Is(err, mailbox.ErrUnknownOutcome) {
		hint = "try again with the same idempotency key; the store did not confirm the change, which may have been made"
	}
	return problem(http.StatusServiceUnavailable, "the store does not respond", hint).later(5)
}

// invalid has the mailbox's own words, which are about what the request has.
func invalid(err error) *Problem {
	_, why, _ := strings.Cut(err.Error(), mailbox.ErrInvalid.Error()+": ")
	return problem(http.StatusUnprocessableEntity, cmp.Or(why, "the request does not fit its thread or run"), "")
}

func draining() *Problem {
	return problem(http.StatusServiceUnavailable, "the server is shutting down", "try again, at another server if there is one").later(5)
}

// notFound names an object that is missing.
func notFound(what, id string) *Problem {
	return problem(http.StatusNotFound, fmt.Sprintf("there is no %s %.260q", what, id), "")
}

// failureOf is failure for a request about an object, which may be missing.
func (s *Server) failureOf(ctx context.Context, err error, what, id string) error {
	if errors.Is(err, mailbox.ErrNotFound) {
		return notFound(what, id)
	}
	return s.failure(ctx, err)
}
