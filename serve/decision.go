package serve

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
)

// Actions of a decision.
const (
	actionAllow  = "allow"
	actionDeny   = "deny"
	actionResult = "result"
)

type decision struct {
	Target string `json:"target" minLength:"1" maxLength:"256" doc:"The id of the ticket, or of the call." example:"call_1"`
	Action string `json:"action" enum:"allow,deny,result" doc:"allow executes the call; deny does not, and the model reads the reason; result does not, and the model reads the result."`
	Reason string `json:"reason,omitempty" maxLength:"4096"`
	Result any    `json:"result,omitempty" doc:"With allow, what a ticket asks for; with result, what the call returns, and not null."`
}

// checkDecisions refuses a result that is none: the model would read null.
func checkDecisions(list []decision) error {
	for i := range list {
		if list[i].Action == actionResult && list[i].Result == nil {
			return problem(http.StatusUnprocessableEntity, "the action result has no result", "give it a result other than null, or use the action deny").about(fmt.Sprintf("body.decisions[%d].result", i))
		}
	}
	return nil
}

// decisionsOf encodes decisions for the mailbox.
func decisionsOf(ctx context.Context, list []decision) ([]mailbox.Decision, error) {
	out := make([]agent.Decision, 0, len(list))
	for _, d := range list {
		v := agent.Decision{Target: d.Target, Action: agent.ActionResume, Result: d.Result, Reason: d.Reason, Choice: d.Action, By: callerOf(ctx)}
		switch d.Action {
		case actionDeny:
			v.Action, v.Result = agent.ActionCancel, "Denied: "+cmp.Or(d.Reason, "the call was not allowed")
		case actionResult:
			v.Action = agent.ActionCancel
		}
		out = append(out, v)
	}
	return agentrun.Decisions(out...) //nolint:wrapcheck // clients do not see it
}

type decideInput struct {
	Run  string `path:"run" maxLength:"256"`
	Body struct {
		Decisions []decision `json:"decisions" minItems:"1" maxItems:"256"`
	}
}

type effect struct {
	RunID  string `json:"run_id"`
	Effect bool   `json:"effect" doc:"Whether the request has an effect. It has none on a run that has ended."`
	Status string `json:"status" doc:"Where the run stood: created, running, waiting or done."`
}

type effectOutput struct{ Body effect }

func (s *Server) decide(ctx context.Context, in *decideInput) (*effectOutput, error) {
	if err := checkDecisions(in.Body.Decisions); err != nil {
		return nil, err
	}
	run, err := s.run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	list, err := decisionsOf(ctx, in.Body.Decisions)
	if err != nil {
		return nil, problem(http.StatusUnprocessableEntity, "the values cannot be kept", "use JSON values").about("body.decisions")
	}
	ok, err := s.box().Decide(ctx, run.ID, list...)
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	if !ok {
		return nil, problem(http.StatusConflict, "the run has ended: "+cmp.Or(run.Termination, "meanwhile"), "the decision came too late")
	}
	s.changed(ctx, "decide", run, true)
	return &effectOutput{Body: effect{RunID: run.ID, Effect: true, Status: string(run.Status)}}, nil
}

// changed logs a change of a run, and wakes the streams that wait for it.
func (s *Server) changed(ctx context.Context, how string, run mailbox.Run, effect bool) {
	s.changes.tell(run.Thread)
	s.cfg.Logger.InfoContext(ctx, "run_changed", "how", how, "run_id", run.ID, "thread_id", run.Thread, "effect", effect, "caller", callerOf(ctx))
}
