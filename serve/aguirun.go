package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/internal/agui"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
)

// aguiRequest is RunAgentInput of the AG-UI protocol.
type aguiRequest struct {
	_ struct{} `additionalProperties:"true"`

	ThreadID        string         `json:"threadId" minLength:"1" maxLength:"256"`
	RunID           string         `json:"runId" minLength:"1" maxLength:"256" doc:"A new id; the run has it."`
	ProtocolVersion string         `json:"protocolVersion,omitempty" maxLength:"64"`
	ParentRunID     string         `json:"parentRunId,omitempty" maxLength:"256"`
	State           any            `json:"state,omitempty" doc:"Ignored: plugins keep the state."`
	Messages        []agui.Message `json:"messages" doc:"The conversation. Its last messages are sent to the agent, if they are the user's and not in the thread yet."`
	Tools           []any          `json:"tools,omitempty" doc:"Tools of the client are refused."`
	Context         []aguiContext  `json:"context,omitempty" doc:"Sent to the agent with the messages."`
	ForwardedProps  any            `json:"forwardedProps,omitempty" doc:"Ignored."`
	Resume          []aguiResume   `json:"resume,omitempty" maxItems:"256" doc:"Answers to what the thread's run asks."`
}

type aguiContext struct {
	_ struct{} `additionalProperties:"true"`

	Description string `json:"description"`
	Value       string `json:"value"`
}

type aguiResume struct {
	_ struct{} `additionalProperties:"true"`

	InterruptID string `json:"interruptId" minLength:"1" maxLength:"256"`
	Status      string `json:"status" enum:"resolved,cancelled"`
	Payload     any    `json:"payload,omitempty" doc:"The answer. {\"approved\": false} denies the call, as does any other value than true, and false alone. A permission without a schema needs {\"approved\": true}."`
}

type aguiInput struct {
	Agent        string `query:"agent" maxLength:"256" doc:"The agent of a new run; the default one if left out."`
	OnDisconnect string `query:"on_disconnect" enum:"continue,cancel" doc:"What becomes of the run when the client leaves. It continues by default."`
	Body         aguiRequest
}

// runAGUI runs an agent for a client of the AG-UI protocol. The stream ends when the run is done, or asks for a decision.
func (s *Server) runAGUI(ctx context.Context, in *aguiInput) (*streamed, error) {
	if p := s.closed(true); p != nil {
		return nil, p
	}
	run, at, err := s.submitAGUI(ctx, in)
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	s.changes.tell(run.Thread)
	return &streamed{Body: func(c huma.Context) {
		_, w := humago.Unwrap(c)
		left := s.stream(ctx, w, run, view{after: at, format: formatAGUI, untilAsked: true, shownAs: in.Body.RunID})
		if left && in.OnDisconnect == "cancel" {
			s.cancelLeft(context.WithoutCancel(ctx), run)
		}
	}}, nil
}

// submitAGUI submits what is new in a request. A run that is there already is streamed again.
func (s *Server) submitAGUI(ctx context.Context, in *aguiInput) (mailbox.Run, position, error) {
	b := &in.Body
	if err := s.checkAGUI(in); err != nil {
		return mailbox.Run{}, position{}, err
	}
	head, err := s.box().Thread(ctx, b.ThreadID)
	if err != nil {
		return mailbox.Run{}, position{}, err //nolint:wrapcheck // see the caller
	}
	if run, found, err := s.box().Run(ctx, b.RunID); err != nil || found && run.Thread == b.ThreadID {
		return run, position{}, err //nolint:wrapcheck // see the caller
	}
	r := mailbox.Request{Thread: b.ThreadID, Agent: in.Agent, Parent: b.ParentRunID, Adapter: adapterAGUI, NewRun: b.RunID}
	messages, err := s.newMessages(ctx, b, head)
	if err != nil {
		return mailbox.Run{}, position{}, err
	}
	if r.Messages, err = agentrun.Inputs(messages...); err == nil {
		r.Decisions, err = s.decisions(ctx, b, head.Open.ID)
	}
	asks := head.Open.Status == mailbox.RunWaiting && agent.WaitReason(head.Open.Wait).Decided()
	switch {
	case err != nil:
		return mailbox.Run{}, position{}, err
	case len(r.Decisions) > 0 && head.Open.ID == "":
		return mailbox.Run{}, position{}, problem(http.StatusConflict, "the thread has no run that asks", "it was answered before, or never asked").about("body.resume")
	case len(r.Decisions) > 0:
		r.NewRun, r.Run, r.Key = "", head.Open.ID, "ag-ui "+b.RunID
	case asks:
		return mailbox.Run{}, position{}, problem(http.StatusConflict, "the thread's run asks for decisions", "answer them with resume").about("body.resume")
	case len(messages) == 0:
		return mailbox.Run{}, position{}, problem(http.StatusUnprocessableEntity, "the last messages are not the user's, or are in the thread already", "add a message of the user, with a new id").about("body.messages")
	}
	sub, err := s.box().SubmitBackground(ctx, r)
	if err != nil {
		return mailbox.Run{}, position{}, err //nolint:wrapcheck // see the caller
	}
	s.cfg.Logger.InfoContext(ctx, "run_submitted", "run_id", sub.Run, "thread_id", sub.Thread, "adapter", adapterAGUI, "repeated", sub.Repeated, "caller", callerOf(ctx))
	run, d, err := s.standing(ctx, sub)
	return run, position{dispatch: d.Seq}, err
}

func (s *Server) checkAGUI(in *aguiInput) error {
	switch {
	case !s.access.Load().agent(in.Agent):
		return problem(http.StatusUnprocessableEntity, "there is no such agent", fmt.Sprintf("it is one of %.400q", s.access.Load().agentNames())).about("query.agent")
	case len(in.Body.Tools) > 0:
		return problem(http.StatusUnprocessableEntity, "tools of the client cannot be called", "give the agent its tools in the configuration of the server").about("body.tools")
	}
	return nil
}

// newMessages are the user's last messages that the thread has not got yet.
func (s *Server) newMessages(ctx context.Context, b *aguiRequest, head mailbox.Thread) (out []abi.Message, err error) {
	latest := agui.Latest(b.Messages)
	from := max(head.Messages-pageSize, 0) + 1
	known := map[string]bool{}
	list, err := s.log(ctx, b.ThreadID, from, head.Messages+1-from)
	if err != nil {
		return nil, err
	}
	for i := range list {
		known[list[i].Message.ID] = true
	}
	first := len(b.Messages) - len(latest)
	for i, m := range latest {
		if m.ID != "" && known[m.ID] {
			continue
		}
		v, err := m.Message()
		if err != nil {
			return nil, problem(http.StatusUnprocessableEntity, err.Error(), "use texts, and media by data or url").about(fmt.Sprintf("body.messages[%d].content", first+i))
		}
		if err := checkContent(&v, fmt.Sprintf("body.messages[%d]", first+i)); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	if text := b.context(); text != "" && len(out) > 0 {
		out[0].Content = append([]abi.ContentBlock{abi.Text(text)}, out[0].Content...)
	}
	return out, nil
}

// context is what the client tells the agent besides the user's words.
func (b *aguiRequest) context() string {
	var text strings.Builder
	for _, c := range b.Context {
		fmt.Fprintf(&text, "%s: %s\n", c.Description, c.Value)
	}
	return text.String()
}

// asking are the tickets of a run that ask for more than a permission. Of others, what does not permit the call denies it.
func (s *Server) asking(ctx context.Context, id string) (map[string]bool, error) {
	out := map[string]bool{}
	run, _, err := s.box().Run(ctx, id)
	if err != nil {
		return nil, err //nolint:wrapcheck // see the caller
	}
	r, err := s.record(ctx, run)
	if err != nil || r.Waiting == nil {
		return out, err
	}
	for i := range r.Waiting.Tickets {
		t := &r.Waiting.Tickets[i]
		out[t.ID] = t.ResponseSchema != nil || t.Wait() != agent.WaitPermission
	}
	return out, nil
}

// decisions are the answers to what a run asks.
func (s *Server) decisions(ctx context.Context, b *aguiRequest, run string) ([]mailbox.Decision, error) {
	if len(b.Resume) == 0 {
		return nil, nil
	}
	asks, err := s.asking(ctx, run)
	if err != nil {
		return nil, err
	}
	out := make([]decision, 0, len(b.Resume))
	for i, r := range b.Resume {
		d := decision{Target: r.InterruptID, Action: actionAllow, Result: r.Payload}
		answer, _ := r.Payload.(map[string]any)
		approved, asked := answer["approved"]
		switch {
		case r.Status == "cancelled":
			d = decision{Target: r.InterruptID, Action: actionDeny, Reason: "the user gave no answer"}
		case answer["editedArgs"] != nil:
			return nil, problem(http.StatusUnprocessableEntity, "arguments of a call cannot be edited", "deny the call, and say in the reason what to do instead").about(fmt.Sprintf("body.resume[%d].payload", i))
		case (asked || !asks[r.InterruptID]) && approved != true, r.Payload == false:
			reason, _ := answer["reason"].(string)
			d = decision{Target: r.InterruptID, Action: actionDeny, Reason: cmp.Or(reason, "the user did not approve")}
		}
		out = append(out, d)
	}
	list, err := decisionsOf(ctx, out)
	if err != nil {
		return nil, errors.Join(problem(http.StatusUnprocessableEntity, "the values cannot be kept", "use JSON values").about("body.resume"), err)
	}
	return list, nil
}
