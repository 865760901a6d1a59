package eval_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/eval"
)

// say makes a message.
func say(role abi.Role, id, text string) abi.Message {
	return abi.Message{ID: id, Role: role, Content: []abi.ContentBlock{abi.Text(text)}}
}

// talk is a conversation of user messages.
func talk(id string, texts ...string) eval.Conversation {
	c := eval.Conversation{ID: id}
	for i, t := range texts {
		c.Messages = append(c.Messages, say(abi.RoleUser, fmt.Sprintf("m%d", i), t))
	}
	return c
}

// summarize is a summarizer that is a function.
type summarize func(r *abi.SummarizeRequest) (*abi.Summary, error)

func (f summarize) Summarize(_ context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	return f(r)
}

// policy is a contender that is measured in bytes.
func policy(name string, f summarize) eval.Contender {
	return eval.Contender{Name: name, Kind: eval.KindPolicy, Summarizer: f, BytesPerToken: 1}
}

// measure runs a config.
func measure(t *testing.T, c eval.Config) *eval.Report {
	t.Helper()
	r, err := eval.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// text is a summary of that text.
func text(s string) (*abi.Summary, error) { return &abi.Summary{Text: s}, nil }

func share(s float64) eval.Budget { return eval.Budget{Share: s} }

func shares(list ...float64) []eval.Budget {
	var out []eval.Budget
	for _, s := range list {
		out = append(out, share(s))
	}
	return out
}
