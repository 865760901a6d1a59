package acp

import (
	"context"
	"errors"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/serve"
)

// adapter is the protocol by which requests come, for plugins.
const adapter = "acp"

// turn is a prompt under way.
type turn struct {
	peer    *peer
	session *session
	run     string
	// calls are the tool calls that have no result.
	calls map[string]bool
	end   settled
}

// settled is how a run ended.
type settled struct {
	Termination string `json:"termination"`
	Error       string `json:"error"`
}

// Prompt implements [sdk.Agent].
func (a *peer) Prompt(ctx context.Context, p sdk.PromptRequest) (sdk.PromptResponse, error) {
	s, err := a.session(p.SessionId)
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	content, err := contentOf(p.Prompt)
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	ctx = context.WithoutCancel(ctx) // the SDK ends it when there is another prompt, which is refused
	if !s.begin() {
		return sdk.PromptResponse{}, sdk.NewInvalidRequest(map[string]any{"error": "a prompt of this session is under way", "hint": "wait for its end, or cancel it"})
	}
	defer s.end()
	t := &turn{peer: a, session: s, calls: map[string]bool{}}
	if err := t.submit(ctx, content); err != nil {
		return sdk.PromptResponse{}, failure(err)
	}
	if err := a.cfg.Server.Follow(ctx, t.run, t.event); err != nil {
		a.cfg.Logger.InfoContext(ctx, "prompt_left", "run_id", t.run, "thread_id", s.id, "error", err)
		return sdk.PromptResponse{}, failure(err)
	}
	return t.response()
}

// submit begins a run. It interrupts what the thread does, as a run that an earlier process left.
func (t *turn) submit(ctx context.Context, content []abi.ContentBlock) error {
	cfg := &t.peer.cfg
	input, err := agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: content})
	if err != nil {
		return invalid("the prompt cannot be kept", "")
	}
	sub, err := cfg.Mailbox.Submit(ctx, mailbox.Request{Thread: string(t.session.id), Agent: cfg.Agent, Adapter: adapter, Messages: input})
	if err != nil {
		return err //nolint:wrapcheck // see the caller
	}
	t.run = sub.Run
	cfg.Logger.InfoContext(ctx, "run_submitted", "run_id", sub.Run, "thread_id", sub.Thread, "adapter", adapter)
	if t.session.began(sub.Run) {
		t.peer.cancelRun(ctx, sub.Run)
	}
	return nil
}

// event passes an event of the run on to the client.
func (t *turn) event(ctx context.Context, e serve.Event) error {
	switch e.Type {
	case "settled":
		return e.Decode(&t.end) //nolint:wrapcheck // it names the event
	case "run_waiting":
		var in struct {
			Outcome struct {
				Tickets []agent.Ticket `json:"tickets"`
			} `json:"outcome"`
		}
		if err := e.Decode(&in); err != nil || len(in.Outcome.Tickets) == 0 {
			return err //nolint:wrapcheck // it names the event
		}
		return t.ask(ctx, in.Outcome.Tickets)
	}
	updates, err := t.updates(e)
	if err != nil {
		return err
	}
	return t.peer.send(ctx, t.session.id, updates...)
}

// send sends updates to the client.
func (a *peer) send(ctx context.Context, id sdk.SessionId, updates ...sdk.SessionUpdate) error {
	for i := range updates {
		if err := a.conn.SessionUpdate(ctx, sdk.SessionNotification{SessionId: id, Update: updates[i]}); err != nil {
			return err //nolint:wrapcheck // the client has left
		}
	}
	return nil
}

// response is how the prompt ended.
func (t *turn) response() (sdk.PromptResponse, error) {
	reason := sdk.StopReasonEndTurn
	switch {
	case t.session.wasCancelled(), t.end.Termination == string(abi.TerminationCancelled):
		reason = sdk.StopReasonCancelled
	case t.end.Error != "" || t.end.Termination == string(abi.TerminationFailed):
		return sdk.PromptResponse{}, sdk.NewInternalError(map[string]any{"error": t.end.Error, "hint": "see the agent's log, on its standard error"})
	case strings.HasPrefix(t.end.Termination, "stopped:"+string(agent.StopMaxRounds)):
		reason = sdk.StopReasonMaxTurnRequests
	case strings.HasPrefix(t.end.Termination, "stopped:"+string(agent.StopTokens)):
		reason = sdk.StopReasonMaxTokens
	}
	return sdk.PromptResponse{StopReason: reason}, nil
}

// Options of a question.
const (
	optionAllow  = "allow"
	optionReject = "reject"
)

// ask asks the client to decide about calls, and hands the run its decisions.
func (t *turn) ask(ctx context.Context, tickets []agent.Ticket) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t.session.asks(cancel)
	var list []agent.Decision
	for i := range tickets {
		d, err := t.decision(ctx, &tickets[i])
		switch {
		case t.session.wasCancelled():
			return nil // and so is the run
		case errors.Is(err, errCancelled):
			t.peer.cancelRun(ctx, t.run)
			return nil
		case err != nil:
			return err
		}
		list = append(list, d)
	}
	for i := range list {
		list[i].By = "acp"
	}
	decisions, err := agentrun.Decisions(list...)
	if err != nil {
		return err //nolint:wrapcheck // see Prompt
	}
	_, err = t.peer.cfg.Mailbox.Decide(ctx, t.run, decisions...)
	if errors.Is(err, mailbox.ErrRefused) {
		return nil // it was decided meanwhile, by another client of the store
	}
	return err //nolint:wrapcheck // see Prompt
}

// errCancelled is a question that the client does not answer since it cancelled the prompt.
var errCancelled = errors.New("the client cancelled the prompt")

// decision asks the client about one call.
func (t *turn) decision(ctx context.Context, k *agent.Ticket) (agent.Decision, error) {
	title, kind := titleOf(k.Call.Name), t.peer.kindOf(&k.Call)
	status := sdk.ToolCallStatusPending
	request := sdk.RequestPermissionRequest{
		SessionId: t.session.id,
		ToolCall:  sdk.ToolCallUpdate{ToolCallId: sdk.ToolCallId(k.Call.ID), Title: &title, Kind: &kind, Status: &status, RawInput: k.Call.Arguments},
		Options: []sdk.PermissionOption{
			{OptionId: optionAllow, Name: "Allow", Kind: sdk.PermissionOptionKindAllowOnce},
			{OptionId: optionReject, Name: "Reject", Kind: sdk.PermissionOptionKindRejectOnce},
		},
	}
	for _, text := range []string{k.Message, k.Reason} {
		if text != "" {
			request.ToolCall.Content = []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(text))}
			break
		}
	}
	answer, err := t.peer.conn.RequestPermission(ctx, request)
	switch {
	case err != nil:
		return agent.Decision{}, err //nolint:wrapcheck // it is the client's
	case answer.Outcome.Selected == nil:
		return agent.Decision{}, errCancelled
	case answer.Outcome.Selected.OptionId == optionAllow:
		return agent.Decision{Target: k.ID, Action: agent.ActionResume, Result: map[string]any{"approved": true}}, nil
	}
	return agent.Decision{Target: k.ID, Action: agent.ActionCancel, Result: "Denied: the user did not allow the call"}, nil
}
