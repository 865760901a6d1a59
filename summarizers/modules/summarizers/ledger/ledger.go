package ledger

import (
	"errors"
	"strconv"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/ledger/keeper"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/talk"
)

// Policy is the name under which a module offers this package.
const Policy = "ledger"

// Errors of [Summarize].
var (
	ErrNoBudget  = errors.New("ledger: budget_tokens: too small for a summary, which has at least " + strconv.Itoa(keeper.MinBudget) + " bytes")
	ErrNoContent = errors.New("ledger: messages: nothing to summarize")
)

// Summarize writes the summary. It is never longer than the budget.
func Summarize(req *mortise.SummarizeRequest) (*mortise.Summary, error) {
	limit := talk.Limit(req)
	if limit < keeper.MinBudget {
		return nil, ErrNoBudget
	}
	if req.Ledger == nil && len(req.Messages) == 0 && req.PreviousSummary == nil {
		return nil, ErrNoContent
	}
	state := stateOf(req)
	for _, t := range req.LiveTasks {
		state.Talk.Tasks = append(state.Talk.Tasks, mortise.LedgerTask{Text: "background task " + t, Status: mortise.TaskDoing})
	}
	keeper.Focus(state, req.Focus)
	s := &mortise.Summary{Text: keeper.Render(state, limit), Policy: Policy}
	s.FromID, s.ToID = talk.Span(req.Messages)
	return s, nil
}

// stateOf is the ledger of the request, or one of its messages.
func stateOf(req *mortise.SummarizeRequest) *mortise.Ledger {
	if req.Ledger != nil {
		return req.Ledger
	}
	l := keeper.New()
	if previous := req.PreviousSummary; previous != nil {
		if old, ok := keeper.ReadBack(*previous); ok {
			l = keeper.From(old)
		} else {
			l.Before(*previous)
		}
	}
	l.Add(req.Messages...)
	state := l.State()
	return &state
}
