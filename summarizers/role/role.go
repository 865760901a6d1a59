package role

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host/capability/model"
	"github.com/mortise-dev/mortise/llm"
)

// Answer asks the model for a guest, under the provider's name of a model. Tool calls in an answer are
// passed over.
func Answer(m llm.Model, name string) func(context.Context, model.Question) (model.Answer, error) {
	return func(ctx context.Context, q model.Question) (model.Answer, error) {
		r := llm.Request{Model: name, Override: &abi.InferenceOverride{MaxTokens: &q.AnswerTokens}}
		if q.System != "" {
			r.Messages = append(r.Messages, message(abi.RoleSystem, q.System))
		}
		r.Messages = append(r.Messages, message(abi.RoleUser, q.Prompt))
		response, err := m.Infer(ctx, r)
		if err == nil && response.Error != "" {
			err = fmt.Errorf("role: %s: %s", q.Role, response.Error)
		}
		return answer(response, err)
	}
}

func message(role abi.Role, text string) abi.Message {
	return abi.Message{Role: role, Content: []abi.ContentBlock{abi.Text(text)}}
}

func answer(r *abi.Response, err error) (model.Answer, error) {
	var out model.Answer
	if r != nil {
		out.Text = r.Message.Text()
		if r.Usage != nil {
			out.InputTokens, out.OutputTokens = r.Usage.PromptTokens, r.Usage.CompletionTokens
		}
	}
	var failure *llm.Error
	if errors.As(err, &failure) && failure.Kind == llm.KindContentFiltered {
		out.Refused, err = true, nil
	}
	return out, err
}
