package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Role is a model that guests ask by the name of its role, with the import
// model_chat. What a question may cost is checked and reserved before the model is asked;
// what it did cost is booked after. The totals are those of the loaded module, whatever its
// generation. A zero is the default, a negative number an error.
type Role struct {
	// Answer asks the model. It must return when ctx ends, which it does with the guest's
	// call: raise Limits.Timeout to what an answer takes. It must be safe for concurrent use,
	// and must not call the module that asks. Of an error the guest receives the kind, and
	// nothing of its text; with [ErrQuota] in it, the guest gets the code for a quota. Required.
	Answer func(ctx context.Context, q Question) (Answer, error)
	// WindowTokens is what the model takes, question and answer together. Required.
	WindowTokens int64
	// AnswerTokens bounds one answer. Default 4,096, but at most a quarter of the window.
	AnswerTokens int64
	// CallTokens and TotalTokens are budgets of questions and answers: for one call of the
	// guest, and in all. Default 1,000,000 and 20,000,000.
	CallTokens, TotalTokens int64
	// InputPrice and OutputPrice are what a million tokens cost, in millionths of the
	// unit of money: 3_000_000 is 3 of it. They are needed for the two budgets below.
	InputPrice, OutputPrice int64
	// CallCost and TotalCost are budgets as above, in millionths of the unit of money. No
	// bound when 0; the tokens are bounded in any case.
	CallCost, TotalCost int64
}

// Question is what a guest asks a role.
type Question struct {
	Role string
	// System and Prompt are valid UTF-8.
	System, Prompt string
	// AnswerTokens is how long the answer may be, at least 1.
	AnswerTokens int64
}

// Answer is what a model said.
type Answer struct {
	Text string
	// Refused means that the model would not answer, as its provider tells. The guest
	// gets the code for failed then.
	Refused bool
	// InputTokens and OutputTokens were billed. With both 0 they are estimated. They count
	// after an error, too.
	InputTokens, OutputTokens int64
}

// Defaults of a role.
const (
	defaultAnswerTokens = 4096
	defaultCallTokens   = 1_000_000
	defaultTotalTokens  = 20_000_000
	maxRoles            = 16
	maxRoleName         = 64
	maxModelNumber      = 1_000_000_000_000
)

// roles returns a copy of the roles with their zero fields filled in.
func roles(in map[string]Role) (map[string]Role, error) {
	if len(in) > maxRoles {
		return nil, fmt.Errorf("model.Grant.Roles: %d are more than the %d that are allowed", len(in), maxRoles)
	}
	out := make(map[string]Role, len(in))
	for _, name := range slices.Sorted(maps.Keys(in)) {
		at := fmt.Sprintf("model.Grant.Roles[%.64q]", name)
		if name == "" || len(name) > maxRoleName {
			return nil, fmt.Errorf("%s: a name has 1 to %d bytes", at, maxRoleName)
		}
		r, err := in[name].withDefaults(at)
		if err != nil {
			return nil, err
		}
		out[name] = r
	}
	return out, nil
}

func (r Role) withDefaults(at string) (Role, error) {
	if r.Answer == nil {
		return r, fmt.Errorf("%s.Answer is nil; give it a function that asks a model", at)
	}
	fields := []engine.Field{
		{Name: ".WindowTokens", Value: r.WindowTokens},
		{Name: ".AnswerTokens", Value: r.AnswerTokens},
		{Name: ".CallTokens", Value: r.CallTokens},
		{Name: ".TotalTokens", Value: r.TotalTokens},
		{Name: ".InputPrice", Value: r.InputPrice},
		{Name: ".OutputPrice", Value: r.OutputPrice},
		{Name: ".CallCost", Value: r.CallCost},
		{Name: ".TotalCost", Value: r.TotalCost},
	}
	if err := engine.Negative(fields...); err != nil {
		return r, errors.New(at + err.Error())
	}
	for _, f := range fields {
		if f.Value > maxModelNumber {
			return r, fmt.Errorf("%s%s is %d, must not be more than %d", at, f.Name, f.Value, int64(maxModelNumber))
		}
	}
	r.AnswerTokens = cmp.Or(r.AnswerTokens, max(1, min(defaultAnswerTokens, r.WindowTokens/4)))
	r.CallTokens = cmp.Or(r.CallTokens, defaultCallTokens)
	r.TotalTokens = cmp.Or(r.TotalTokens, defaultTotalTokens)
	switch {
	case r.WindowTokens == 0:
		return r, fmt.Errorf("%s.WindowTokens is missing; set it to the number of tokens that the model takes", at)
	case r.AnswerTokens >= r.WindowTokens:
		return r, fmt.Errorf("%s.AnswerTokens is %d, must be below WindowTokens (%d)", at, r.AnswerTokens, r.WindowTokens)
	case r.CallCost+r.TotalCost > 0 && r.InputPrice+r.OutputPrice == 0:
		return r, fmt.Errorf("%s: a budget of cost needs InputPrice and OutputPrice", at)
	}
	return r, nil
}
