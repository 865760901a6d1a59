package eval_test

import (
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/eval"
)

func TestBudgetsAreParsed(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]eval.Budget{"10%": {Share: 0.1}, "2.5%": {Share: 0.025}, "100%": {Share: 1}, "2000": {Tokens: 2000}} {
		if b, err := eval.ParseBudget(s); err != nil || b != want || b.String() != s {
			t.Errorf("%s: %+v (%s), %v", s, b, b, err)
		}
	}
	for _, s := range []string{"", "%", "0%", "-1%", "101%", "NaN%", "0", "-5", "1.5", "x", "1e3"} {
		if b, err := eval.ParseBudget(s); err == nil {
			t.Errorf("%q is taken as %+v", s, b)
		}
	}
}

// TestTokensAreAShareOfTheConversation: half of its tokens are half of its bytes.
func TestTokensAreAShareOfTheConversation(t *testing.T) {
	t.Parallel()
	set := facts(100)
	half := eval.Budget{Tokens: compaction.Estimate(set.Conversations[0].Messages) / 2}
	r := measure(t, eval.Config{
		Sets: []eval.Set{set}, Budgets: []eval.Budget{half, {Tokens: 1 << 40}},
		Contenders: []eval.Contender{policy("all", func(r *abi.SummarizeRequest) (*abi.Summary, error) {
			return text(eval.Flatten(r.Messages))
		})},
	})
	if c, ok := r.Find("facts", "all", half, 1, ""); !ok || c.Literal < 0.49 || c.Literal > 0.5 {
		t.Errorf("half of the tokens: %+v", c)
	}
	if c := r.Cells[1]; c.Literal != 1 {
		t.Errorf("more than all: %+v", c)
	}
}
