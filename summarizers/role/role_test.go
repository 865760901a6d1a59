package role_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	modelcap "github.com/mortise-dev/mortise/host/capability/model"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/summarizers/role"
)

// scripted is a model that a test writes.
type scripted func(r llm.Request) (*abi.Response, error)

func (f scripted) Infer(_ context.Context, r llm.Request) (*abi.Response, error) { return f(r) }

func says(text string, usage *abi.Usage) *abi.Response {
	return &abi.Response{Message: abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text(text)}}, Usage: usage}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	broke := errors.New("broke")
	for name, tc := range map[string]struct {
		response *abi.Response
		err      error
		want     modelcap.Answer
		fails    bool
	}{
		"said":     {says("yes", &abi.Usage{PromptTokens: 7, CompletionTokens: 2}), nil, modelcap.Answer{Text: "yes", InputTokens: 7, OutputTokens: 2}, false},
		"unbilled": {says("yes", nil), nil, modelcap.Answer{Text: "yes"}, false},
		"failed":   {nil, broke, modelcap.Answer{}, true},
		"in part":  {says("ye", &abi.Usage{PromptTokens: 7}), broke, modelcap.Answer{Text: "ye", InputTokens: 7}, true},
		"refused":  {nil, fmt.Errorf("asking: %w", &llm.Error{Kind: llm.KindContentFiltered}), modelcap.Answer{Refused: true}, false},
		"its own":  {&abi.Response{Error: "no"}, nil, modelcap.Answer{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask := role.Answer(scripted(func(r llm.Request) (*abi.Response, error) {
				if r.Model != "m-1" || len(r.Messages) != 2 || r.Messages[0].Role != abi.RoleSystem || r.Messages[1].Text() != "prompt" || *r.Override.MaxTokens != 9 {
					t.Errorf("asked %+v", r)
				}
				return tc.response, tc.err
			}), "m-1")
			got, err := ask(t.Context(), modelcap.Question{Role: "r", System: "system", Prompt: "prompt", AnswerTokens: 9})
			if got != tc.want || (err != nil) != tc.fails || tc.err != nil && tc.fails && !errors.Is(err, tc.err) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// A guest gets a model by the name of its role, within the model's window.
func ExampleAnswer() {
	model := scripted(func(r llm.Request) (*abi.Response, error) { return says("Short: "+r.Messages[0].Text(), nil), nil })
	granted := &modelcap.Grant{Roles: map[string]modelcap.Role{
		"summarizer": {Answer: role.Answer(model, "small-1"), WindowTokens: 32_000},
	}}
	a, err := granted.Roles["summarizer"].Answer(context.Background(), modelcap.Question{Prompt: "a story", AnswerTokens: 100})
	fmt.Println(a.Text, err)
	// Output: Short: a story <nil>
}
