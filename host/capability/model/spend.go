package model

import (
	"fmt"
	"math"
	"sync"
)

// expense is what questions to a model come to.
type expense struct{ tokens, cost int64 }

func (e expense) plus(o expense) expense {
	return expense{add(e.tokens, o.tokens), add(e.cost, o.cost)}
}

// add does not overflow.
func add(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// bytesPerToken is how a text is turned into tokens before a provider has counted: fewer
// bytes than a token has in most languages, so that the estimate is rather too high.
const bytesPerToken = 3

// overheadTokens are those around a question.
const overheadTokens = 16

func estimateTokens(texts ...string) int64 {
	n := int64(0)
	for _, t := range texts {
		n += (int64(len(t)) + bytesPerToken - 1) / bytesPerToken
	}
	return n
}

// expense is what input and output tokens come to, rounded up.
func (r *Role) expense(input, output int64) expense {
	return expense{tokens: add(input, output), cost: add(price(input, r.InputPrice), price(output, r.OutputPrice))}
}

// price is tokens times the price of a million, rounded up.
func price(tokens, million int64) int64 {
	const unit = 1_000_000
	whole, rest := tokens/unit, tokens%unit
	if million != 0 && whole > math.MaxInt64/2/million {
		return math.MaxInt64
	}
	return add(whole*million, (rest*million+unit-1)/unit)
}

// ledger is what the roles of a module have spent, and what is reserved for the questions
// under way. It is safe for concurrent use.
type ledger struct {
	mu    sync.Mutex
	spent map[string]expense
	all   expense
}

func (l *ledger) of(role string) expense {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spent[role]
}

func (l *ledger) total() expense {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// book adds to what a role has spent.
func (l *ledger) book(role string, e expense) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(role, e)
}

func (l *ledger) put(role string, e expense) {
	if l.spent == nil {
		l.spent = map[string]expense{}
	}
	l.spent[role], l.all = l.spent[role].plus(e), l.all.plus(e)
}

// reserve books what a question may come to, if the budgets allow it. Else it names which
// does not.
func (l *ledger) reserve(name string, r *Role, inCall, need expense) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	spent := l.spent[name]
	for _, b := range []struct {
		what          string
		spent, budget int64
		need          int64
	}{
		{"tokens of this call", inCall.tokens, r.CallTokens, need.tokens},
		{"tokens", spent.tokens, r.TotalTokens, need.tokens},
		{"millionths of money of this call", inCall.cost, r.CallCost, need.cost},
		{"millionths of money", spent.cost, r.TotalCost, need.cost},
	} {
		if b.budget > 0 && add(b.spent, b.need) > b.budget {
			return fmt.Sprintf("the role %q has used %d of its %d %s, and the question may come to %d", name, b.spent, b.budget, b.what, b.need)
		}
	}
	l.put(name, need)
	return ""
}

// left is how many tokens the budgets still allow in this call.
func (l *ledger) left(name string, r *Role, inCall expense) int64 {
	return max(0, min(r.CallTokens-inCall.tokens, r.TotalTokens-l.of(name).tokens))
}
