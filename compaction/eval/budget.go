package eval

import (
	"fmt"
	"strconv"
	"strings"
)

// Budget is how long a text may be: a share of its conversation, or a number of
// tokens. One of the two is set.
type Budget struct {
	// Share is above 0 and at most 1.
	Share float64
	// Tokens are estimated. On a conversation of n tokens they are the share
	// Tokens/n, at most all of it.
	Tokens int64
}

// ParseBudget reads a share, "10%", or a number of tokens, "2000".
func ParseBudget(s string) (Budget, error) {
	var b Budget
	var err error
	if number, ok := strings.CutSuffix(s, "%"); ok {
		b.Share, err = strconv.ParseFloat(number, 64)
		b.Share /= 100
	} else {
		b.Tokens, err = strconv.ParseInt(s, 10, 64)
	}
	if err != nil || !b.valid() {
		return b, fmt.Errorf("eval: budget %q: write a share up to 100%%, as 10%%, or a number of tokens, as 2000", s)
	}
	return b, nil
}

// String writes the budget as [ParseBudget] reads it.
func (b Budget) String() string {
	if b.Tokens > 0 {
		return strconv.FormatInt(b.Tokens, 10)
	}
	return strconv.FormatFloat(b.Share*100, 'g', 4, 64) + "%"
}

// MarshalText is String.
func (b Budget) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

func (b Budget) valid() bool {
	if b.Tokens != 0 {
		return b.Tokens > 0 && b.Share == 0
	}
	return b.Share > 0 && b.Share <= 1
}

// of is the budget as a share of a conversation of that many tokens.
func (b Budget) of(tokens int64) float64 {
	if b.Tokens == 0 {
		return b.Share
	}
	return min(1, float64(b.Tokens)/float64(max(1, tokens)))
}
