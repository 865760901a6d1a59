package serve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
)

// Protocols by which requests come, for plugins.
const (
	adapterHTTP = "http"
	adapterAGUI = "ag-ui"
)

// Modes of a submission.
const (
	modeForeground = "foreground"
	modeBackground = "background"
	modeLive       = "live"
)

type runRequest struct {
	Agent          string     `json:"agent,omitempty" maxLength:"256" doc:"The agent of a new run; the default one if empty." example:"assistant"`
	Input          *input     `json:"input,omitempty" doc:"What the agent is sent: a text, or messages. It may be left out with decisions."`
	Mode           string     `json:"mode,omitempty" enum:"background,foreground,live" default:"background" doc:"background queues the run; foreground interrupts what the thread does; live hands the messages to the run under way, and queues them without one."`
	IdempotencyKey string     `json:"idempotency_key,omitempty" maxLength:"256" doc:"The same request under the same key is one request. The header Idempotency-Key says the same."`
	Priority       int8       `json:"priority,omitempty" minimum:"-128" maximum:"127" doc:"The lowest is first."`
	Tenant         string     `json:"tenant,omitempty" maxLength:"256" doc:"The owner of the thread."`
	ParentRunID    string     `json:"parent_run_id,omitempty" maxLength:"256" doc:"The run that asked for this one."`
	ParentThreadID string     `json:"parent_thread_id,omitempty" maxLength:"256" doc:"The thread above a new one, with which it is deleted."`
	NotBefore      *time.Time `json:"not_before,omitempty" doc:"When the run may begin. Not with mode foreground."`
	TimeoutSeconds float64    `json:"timeout_seconds,omitempty" minimum:"0" maximum:"604800" doc:"How long one execution may take. One that takes longer has failed, and is tried again from its last step."`
	Decisions      []decision `json:"decisions,omitempty" maxItems:"256" doc:"Decisions that the thread's waiting run waits for."`
}

// input is a text, or messages.
type input []inputMessage

type inputMessage struct {
	ID      string             `json:"id,omitempty" maxLength:"256" doc:"Unique in the thread; made if empty."`
	Role    string             `json:"role" enum:"user,system" doc:"With tokens, system needs one with the scope admin." example:"user"`
	Content []abi.ContentBlock `json:"content" minItems:"1"`
}

// Schema implements huma.SchemaProvider.
func (input) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{
		OneOf:    []*huma.Schema{{Type: huma.TypeString, Pattern: `\S`}, r.Schema(reflect.TypeFor[[]inputMessage](), true, "")},
		Examples: []any{"What is in this folder?"},
	}
}

// UnmarshalJSON implements json.Unmarshaler.
func (i *input) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte(`"`)) {
		return json.Unmarshal(data, (*[]inputMessage)(i)) //nolint:wrapcheck // the schema was checked before
	}
	var text string
	err := json.Unmarshal(data, &text)
	*i = input{{Role: string(abi.RoleUser), Content: []abi.ContentBlock{abi.Text(text)}}}
	return err //nolint:wrapcheck // it is a string
}

type newThreadInput struct {
	After        string `query:"after" maxLength:"64" doc:"Of a stream: the event after which it begins."`
	Format       string `query:"format" enum:"ag-ui" doc:"Of a stream: ag-ui sends the events of the AG-UI protocol."`
	OnDisconnect string `query:"on_disconnect" enum:"continue,cancel" doc:"Of a stream: what becomes of the run when the client leaves. It continues by default."`
	Accept       string `header:"Accept" doc:"text/event-stream answers with the events of the run."`
	Key          string `header:"Idempotency-Key" maxLength:"256"`
	TraceParent  string `header:"Traceparent" doc:"The trace that the run belongs to, as W3C Trace Context has it. What is not valid is ignored."`
	TraceState   string `header:"Tracestate"`
	Body         runRequest
}

// submitInput has the fields of newThreadInput once more: huma does not see those of an embedded
// type that is not exported.
type submitInput struct {
	Thread       string `path:"thread" maxLength:"256"`
	After        string `query:"after" maxLength:"64" doc:"Of a stream: the event after which it begins."`
	Format       string `query:"format" enum:"ag-ui" doc:"Of a stream: ag-ui sends the events of the AG-UI protocol."`
	OnDisconnect string `query:"on_disconnect" enum:"continue,cancel" doc:"Of a stream: what becomes of the run when the client leaves. It continues by default."`
	Accept       string `header:"Accept" doc:"text/event-stream answers with the events of the run."`
	Key          string `header:"Idempotency-Key" maxLength:"256"`
	TraceParent  string `header:"Traceparent" doc:"The trace that the run belongs to, as W3C Trace Context has it. What is not valid is ignored."`
	TraceState   string `header:"Tracestate"`
	Body         runRequest
}

type submitted struct {
	RunID      string `json:"run_id"`
	ThreadID   string `json:"thread_id"`
	DispatchID string `json:"dispatch_id"`
	Status     string `json:"status" doc:"Where the run stands: created, running, waiting or done."`
	Repeated   bool   `json:"repeated,omitempty" doc:"The same request was here before, under its idempotency key."`
}

// streamed is a response that is written by hand.
type streamed struct {
	Body func(huma.Context)
}

func (s *Server) newThread(ctx context.Context, in *newThreadInput) (*streamed, error) {
	return s.submit(ctx, &submitInput{
		After: in.After, Format: in.Format, OnDisconnect: in.OnDisconnect, Accept: in.Accept, Key: in.Key, TraceParent: in.TraceParent, TraceState: in.TraceState, Body: in.Body,
	})
}

func (s *Server) submit(ctx context.Context, in *submitInput) (*streamed, error) {
	asStream := acceptsStream(in.Accept)
	if p := s.closed(asStream); p != nil {
		return nil, p
	}
	at, err := parsePosition(in.After, "query.after")
	if err != nil {
		return nil, err
	}
	if !asStream && in.After+in.OnDisconnect+in.Format != "" {
		return nil, problem(http.StatusUnprocessableEntity, "after, format and on_disconnect are about a stream", "send the header Accept: text/event-stream").about("query")
	}
	req, err := s.request(ctx, in)
	if err != nil {
		return nil, err
	}
	sub, err := s.dispatch(ctx, in.Body.Mode, req)
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	s.changes.tell(sub.Thread)
	run, d, err := s.standing(ctx, sub)
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	s.cfg.Logger.InfoContext(ctx, "run_submitted", "run_id", sub.Run, "thread_id", sub.Thread, "mode", in.Body.Mode, "repeated", sub.Repeated, "caller", callerOf(ctx))
	return &streamed{Body: func(c huma.Context) {
		_, w := humago.Unwrap(c)
		if !asStream {
			w.Header().Set("Location", runPath(sub.Run))
			writeJSON(w, http.StatusAccepted, "application/json", submitted{
				RunID: sub.Run, ThreadID: sub.Thread, DispatchID: sub.Dispatch, Status: string(run.Status), Repeated: sub.Repeated,
			})
			return
		}
		if at == (position{}) {
			at.dispatch = d.Seq
		}
		left := s.stream(ctx, w, run, view{after: at, format: in.Format})
		if left && in.OnDisconnect == "cancel" {
			s.cancelLeft(context.WithoutCancel(ctx), run)
		}
	}}, nil
}

// closed refuses runs while the server shuts down, and those whose stream would have no place.
func (s *Server) closed(asStream bool) *Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.crowded(); p != nil && (asStream || s.drained) {
		return p
	}
	return nil
}

// standing reads what became of a submission.
func (s *Server) standing(ctx context.Context, sub mailbox.Submission) (mailbox.Run, mailbox.Dispatch, error) {
	run, found, err := s.box().Run(ctx, sub.Run)
	if err != nil || !found {
		return run, mailbox.Dispatch{}, cmp.Or(err, mailbox.ErrNotFound)
	}
	d, _, err := s.box().Dispatch(ctx, sub.Dispatch)
	return run, d, err //nolint:wrapcheck // clients do not see it
}

func (s *Server) cancelLeft(ctx context.Context, run mailbox.Run) {
	ok, err := s.box().CancelRun(ctx, run.ID)
	_ = s.failure(ctx, err)
	s.changed(ctx, "cancel: the client has left", run, ok)
}

func (s *Server) dispatch(ctx context.Context, mode string, r mailbox.Request) (mailbox.Submission, error) {
	switch mode {
	case modeForeground:
		return s.box().Submit(ctx, r) //nolint:wrapcheck // clients do not see it
	case modeLive:
		return s.box().SubmitLive(ctx, r, "") //nolint:wrapcheck // clients do not see it
	default:
		return s.box().SubmitBackground(ctx, r) //nolint:wrapcheck // clients do not see it
	}
}

// request checks a body, and makes the mailbox's request of it.
func (s *Server) request(ctx context.Context, in *submitInput) (mailbox.Request, error) {
	b := &in.Body
	key, err := keyOf(in.Key, b.IdempotencyKey)
	if err != nil {
		return mailbox.Request{}, err
	}
	r := mailbox.Request{
		Thread: in.Thread, Tenant: b.Tenant, Agent: b.Agent, Parent: b.ParentRunID, ParentThreadID: b.ParentThreadID, Adapter: adapterHTTP, Priority: b.Priority, Key: key,
	}
	r.Timeout = time.Duration(b.TimeoutSeconds * float64(time.Second))
	r.Trace = traceOf(in.TraceParent, in.TraceState)
	if b.NotBefore != nil {
		r.At = b.NotBefore.UTC()
	}
	input := b.messages()
	if err := s.check(ctx, b, input); err != nil {
		return r, err
	}
	if r.Thread == "" && key != "" {
		r.Thread = "t-" + hashed("thread", b.Tenant, key)
	}
	if key != "" {
		b.nameMessages(r.Thread, key, input)
	}
	if r.Messages, err = agentrun.Inputs(input...); err == nil {
		r.Decisions, err = decisionsOf(ctx, b.Decisions)
	}
	if err != nil {
		return r, problem(http.StatusUnprocessableEntity, "the values cannot be kept", "use JSON values").about("body")
	}
	return r, nil
}

// check refuses what the schema of a body allows, and no run can have.
func (s *Server) check(ctx context.Context, b *runRequest, input []abi.Message) error {
	switch {
	case !s.access.Load().agent(b.Agent):
		return problem(http.StatusUnprocessableEntity, "there is no such agent", fmt.Sprintf("it is one of %.400q", s.access.Load().agentNames())).about("body.agent")
	case b.NotBefore != nil && b.Mode == modeForeground:
		return problem(http.StatusUnprocessableEntity, "a run in the foreground begins at once", "use mode background").about("body.not_before")
	case len(input) == 0 && len(b.Decisions) == 0:
		return problem(http.StatusUnprocessableEntity, "the request brings nothing", "give it an input, or decisions").about("body.input")
	}
	for i := range input {
		field := fmt.Sprintf("body.input[%d]", i)
		if input[i].Role == abi.RoleSystem && !callerIn(ctx).operates {
			return problem(http.StatusForbidden, "the token may not send messages of role system", "use role user, or a token with the scope admin").about(field + ".role")
		}
		if err := checkContent(&input[i], field); err != nil {
			return err
		}
	}
	return checkDecisions(b.Decisions)
}

// maxTraceState bounds the header tracestate, as W3C Trace Context does.
const maxTraceState = 512

// traceOf is the trace of a request, as mailboxtrace reads it.
func traceOf(parent, state string) map[string]string {
	if !traceParent.MatchString(parent) {
		return nil
	}
	out := map[string]string{"traceparent": parent}
	if state != "" && len(state) <= maxTraceState {
		out["tracestate"] = state
	}
	return out
}

// traceParent is what a header traceparent of version 00 looks like.
var traceParent = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

func keyOf(header, body string) (string, error) {
	if header != "" && body != "" && header != body {
		return "", problem(http.StatusUnprocessableEntity, "the header has another key", "send one of both").about("body.idempotency_key")
	}
	return cmp.Or(header, body), nil
}

func (b *runRequest) messages() (out []abi.Message) {
	if b.Input == nil {
		return nil
	}
	for _, m := range *b.Input {
		out = append(out, abi.Message{ID: m.ID, Role: abi.Role(m.Role), Content: m.Content})
	}
	return out
}

// nameMessages gives messages ids that are made of the key and of the whole body, so that another
// body is another request for the mailbox.
func (b *runRequest) nameMessages(thread, key string, list []abi.Message) {
	same := *b
	same.IdempotencyKey = ""
	body, _ := json.Marshal(same) // it was JSON
	for i := range list {
		list[i].ID = cmp.Or(list[i].ID, "m-"+hashed("message", thread, key, fmt.Sprint(i), string(body)))
	}
}

func hashed(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

func acceptsStream(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		kind, _, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(kind), "text/event-stream") {
			return true
		}
	}
	return false
}
