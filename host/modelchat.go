package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Names of the imports by which a guest asks a role.
const (
	importModelChat = "model_chat"
	importModelInfo = "model_info"
)

// maxChatHead is how many bytes the first block of model_chat may have beside its text.
const maxChatHead = 1 << 10

// maxEscapes is how many bytes of JSON a byte of text may take: \u0000.
const maxEscapes = 6

// chatHead is the question without its prompt, as a guest writes it.
type chatHead struct {
	Role         string `json:"role"`
	System       string `json:"system"`
	AnswerTokens int64  `json:"answer_tokens"`
}

// chatInfo is what a guest is told about a role.
type chatInfo struct {
	WindowTokens  int64 `json:"window_tokens"`
	AnswerTokens  int64 `json:"answer_tokens"`
	LeftTokens    int64 `json:"left_tokens"`
	LeftQuestions int64 `json:"left_questions"`
}

// role finds what a guest asks for. These imports need no grant to be linked, so that one
// binary may do with a model or without; here it is refused.
func (s *callState) role(what, name string) (*ModelRole, uint64) {
	if s.caps.model == nil || len(s.caps.model.Roles) == 0 {
		return nil, s.refuse(CodeDenied, what+": no role of a model is granted")
	}
	r, ok := s.caps.model.Roles[name]
	if !ok {
		return nil, s.refuse(CodeDenied, fmt.Sprintf("%s: the role %.64q is not granted", what, name))
	}
	return &r, 0
}

// modelInfo is the import model_info: a block with JSON about the role.
func modelInfo(g guest, stack []uint64) {
	_, s := g.enter(importModelInfo)
	g.spend(modelQuestion)
	name := optional(g, importModelInfo, stack[0])
	r, code := s.role(importModelInfo, name)
	if stack[0] = code; code != 0 {
		return
	}
	text, err := json.Marshal(chatInfo{
		WindowTokens: r.WindowTokens, AnswerTokens: r.AnswerTokens,
		LeftTokens: s.caps.use.models.left(name, r, s.spent[name]), LeftQuestions: int64(max(0, s.caps.model.Calls-s.asked)),
	})
	if err != nil {
		stack[0] = s.refuse(CodeFailed, importModelInfo+": it did not work")
		return
	}
	stack[0] = g.store(importModelInfo, text)
}

// modelChat is the import model_chat: a block with the answer, 0 for an empty one.
func modelChat(g guest, stack []uint64) {
	ctx, s := g.enter(importModelChat)
	s.caps.use.model.Add(1)
	g.spend(modelQuestion)
	head, prompt := optional(g, importModelChat, stack[0]), optional(g, importModelChat, stack[1])
	g.spend(10 * len(head))
	q, r, need, code := s.question(head, prompt)
	if stack[0] = code; code != 0 {
		return
	}
	s.asked++
	var a ModelAnswer
	err := guard(func() (err error) {
		a, err = r.Answer(ctx, q)
		return err
	})
	s.settle(r, &q, need, &a, err)
	g.leave()
	stack[0] = 0
	switch limit := s.caps.model.ReplyBytes; {
	case err != nil:
		stack[0] = s.failed(ctx, importModelChat, err)
	case a.Refused:
		stack[0] = s.refuse(CodeFailed, importModelChat+": the model refused to answer")
	case len(a.Text) > limit:
		stack[0] = s.refuse(CodeTooLarge, fmt.Sprintf("model_chat: the answer has %d bytes, %d are allowed", len(a.Text), limit))
	case a.Text != "":
		stack[0] = g.store(importModelChat, []byte(a.Text))
	}
}

// question checks what a guest asks, and reserves what it may come to. A code other than
// 0 is a refusal.
func (s *callState) question(head, prompt string) (q ModelQuestion, r *ModelRole, need expense, code uint64) {
	var h chatHead
	m := s.caps.model
	if m != nil && len(head) > maxEscapes*m.RequestBytes+maxChatHead {
		return q, r, need, s.refuse(CodeTooLarge, fmt.Sprintf("model_chat: the first block has %d bytes, and the question may have %d", len(head), m.RequestBytes))
	}
	var err error
	if m != nil { // else it is refused, whatever it asks
		err = json.Unmarshal([]byte(head), &h)
	}
	if r, code = s.role(importModelChat, h.Role); code != 0 {
		return q, r, need, code
	}
	switch {
	case err != nil:
		return q, r, need, s.refuse(CodeInvalid, "model_chat: the first block is not JSON of the form {role, system, answer_tokens}")
	case prompt == "" || h.AnswerTokens < 0:
		return q, r, need, s.refuse(CodeInvalid, "model_chat: the prompt is empty, or answer_tokens is negative")
	case len(prompt)+len(h.System) > m.RequestBytes:
		return q, r, need, s.refuse(CodeTooLarge, fmt.Sprintf("model_chat: the question has %d bytes, %d are allowed", len(prompt)+len(h.System), m.RequestBytes))
	case s.asked >= m.Calls:
		return q, r, need, s.refuse(CodeQuota, fmt.Sprintf("model_chat: %d questions are allowed in a call", m.Calls))
	}
	q = ModelQuestion{Role: h.Role, System: strings.ToValidUTF8(h.System, "\ufffd"), Prompt: strings.ToValidUTF8(prompt, "\ufffd"), AnswerTokens: r.AnswerTokens}
	if h.AnswerTokens > 0 {
		q.AnswerTokens = min(h.AnswerTokens, r.AnswerTokens)
	}
	asks := q.tokens()
	if asks+q.AnswerTokens > r.WindowTokens {
		return q, r, need, s.refuse(CodeTooLarge, fmt.Sprintf(
			"model_chat: the question has about %d tokens and the answer may have %d; the model of the role %q takes %d together",
			asks, q.AnswerTokens, h.Role, r.WindowTokens))
	}
	need = r.expense(asks, q.AnswerTokens)
	if why := s.caps.use.models.reserve(h.Role, r, s.spent[h.Role], need); why != "" {
		return q, r, need, s.refuse(CodeQuota, "model_chat: "+why)
	}
	return q, r, need, 0
}

// tokens is how long the question is, estimated.
func (q *ModelQuestion) tokens() int64 { return overheadTokens + estimateTokens(q.System, q.Prompt) }

// settle books what a question came to in the place of what was reserved for it.
func (s *callState) settle(r *ModelRole, q *ModelQuestion, reserved expense, a *ModelAnswer, err error) {
	in, out := min(max(0, a.InputTokens), maxModelNumber), min(max(0, a.OutputTokens), maxModelNumber)
	switch {
	case in+out > 0:
	case err == nil:
		in, out = q.tokens(), estimateTokens(a.Text)
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		in = q.tokens() // it was sent, and is billed
	}
	actual := r.expense(in, out)
	s.caps.use.models.book(q.Role, expense{actual.tokens - reserved.tokens, actual.cost - reserved.cost})
	if s.spent == nil {
		s.spent = map[string]expense{}
	}
	s.spent[q.Role] = s.spent[q.Role].plus(actual)
}
