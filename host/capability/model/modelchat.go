package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Names of the imports by which a guest asks a role.
const (
	importModelChat = "model_chat"
	importModelInfo = "model_info"
)

// maxChatHead is how many bytes the first block of model_chat may have besides its text.
const maxChatHead = 1 << 10

// maxEscapes is how many bytes of JSON a byte of text may take: \u0000.
const maxEscapes = 6

// chatHead is the question without its prompt, as a guest writes it.
type chatHead struct {
	Role         string `json:"role"`
	System       string `json:"system"`
	AnswerTokens int64  `json:"answer_tokens"`
}

// chatInfo is what a guest receives about a role.
type chatInfo struct {
	WindowTokens  int64 `json:"window_tokens"`
	AnswerTokens  int64 `json:"answer_tokens"`
	LeftTokens    int64 `json:"left_tokens"`
	LeftQuestions int64 `json:"left_questions"`
}

// role finds what a guest asks for.
func (o *modelOpened) role(s *engine.CallState, what, name string) (*Role, uint64) {
	if len(o.grant.Roles) == 0 {
		return nil, s.Refuse(engine.CodeDenied, what+": no role of a model is granted")
	}
	r, ok := o.grant.Roles[name]
	if !ok {
		return nil, s.Refuse(engine.CodeDenied, fmt.Sprintf("%s: the role %.64q is not granted", what, name))
	}
	return &r, 0
}

// info is the import model_info: a block with JSON about the role.
func (o *modelOpened) info(g engine.Guest, stack []uint64) {
	_, s := g.Enter(importModelInfo)
	c := engine.InCall[modelCall](s, o)
	g.Spend(modelQuestion)
	name := engine.Optional(g, importModelInfo, stack[0])
	r, code := o.role(s, importModelInfo, name)
	if stack[0] = code; code != 0 {
		return
	}
	text, err := json.Marshal(chatInfo{
		WindowTokens: r.WindowTokens, AnswerTokens: r.AnswerTokens,
		LeftTokens: o.spent.left(name, r, c.spent[name]), LeftQuestions: int64(max(0, o.grant.Calls-c.asked)),
	})
	if err != nil {
		stack[0] = s.Refuse(engine.CodeFailed, importModelInfo+": it did not work")
		return
	}
	stack[0] = g.Store(importModelInfo, text)
}

// chat is the import model_chat: a block with the answer, 0 for an empty one.
func (o *modelOpened) chat(g engine.Guest, stack []uint64) {
	ctx, s := g.Enter(importModelChat)
	c := engine.InCall[modelCall](s, o)
	o.uses.Add(1)
	g.Spend(modelQuestion)
	head, prompt := engine.Optional(g, importModelChat, stack[0]), engine.Optional(g, importModelChat, stack[1])
	g.Spend(10 * len(head))
	q, r, need, code := o.question(s, c, head, prompt)
	if stack[0] = code; code != 0 {
		return
	}
	c.asked++
	var a Answer
	err := engine.Guard(func() (err error) {
		a, err = r.Answer(ctx, q)
		return err
	})
	o.settle(c, r, &q, need, &a, err)
	g.Leave()
	stack[0] = 0
	switch limit := o.grant.ReplyBytes; {
	case err != nil:
		stack[0] = s.Failed(ctx, importModelChat, err)
	case a.Refused:
		stack[0] = s.Refuse(engine.CodeFailed, importModelChat+": the model refused to answer")
	case len(a.Text) > limit:
		stack[0] = s.Refuse(engine.CodeTooLarge, fmt.Sprintf("model_chat: the answer has %d bytes, %d are allowed", len(a.Text), limit))
	case a.Text != "":
		stack[0] = g.Store(importModelChat, []byte(a.Text))
	}
}

// question checks what a guest asks, and reserves what it may come to. A code other than
// 0 is a refusal.
func (o *modelOpened) question(s *engine.CallState, c *modelCall, head, prompt string) (q Question, r *Role, need expense, code uint64) {
	var h chatHead
	m := o.grant
	if len(head) > maxEscapes*m.RequestBytes+maxChatHead {
		return q, r, need, s.Refuse(engine.CodeTooLarge, fmt.Sprintf("model_chat: the first block has %d bytes, and the question may have %d", len(head), m.RequestBytes))
	}
	err := json.Unmarshal([]byte(head), &h)
	if r, code = o.role(s, importModelChat, h.Role); code != 0 {
		return q, r, need, code
	}
	switch {
	case err != nil:
		return q, r, need, s.Refuse(engine.CodeInvalid, "model_chat: the first block is not JSON of the form {role, system, answer_tokens}")
	case prompt == "" || h.AnswerTokens < 0:
		return q, r, need, s.Refuse(engine.CodeInvalid, "model_chat: the prompt is empty, or answer_tokens is negative")
	case len(prompt)+len(h.System) > m.RequestBytes:
		return q, r, need, s.Refuse(engine.CodeTooLarge, fmt.Sprintf("model_chat: the question has %d bytes, %d are allowed", len(prompt)+len(h.System), m.RequestBytes))
	case c.asked >= m.Calls:
		return q, r, need, s.Refuse(engine.CodeQuota, fmt.Sprintf("model_chat: %d questions are allowed in a call", m.Calls))
	}
	q = Question{Role: h.Role, System: strings.ToValidUTF8(h.System, "\ufffd"), Prompt: strings.ToValidUTF8(prompt, "\ufffd"), AnswerTokens: r.AnswerTokens}
	if h.AnswerTokens > 0 {
		q.AnswerTokens = min(h.AnswerTokens, r.AnswerTokens)
	}
	asks := q.tokens()
	if asks+q.AnswerTokens > r.WindowTokens {
		return q, r, need, s.Refuse(engine.CodeTooLarge, fmt.Sprintf(
			"model_chat: the question has about %d tokens and the answer may have %d; the model of the role %q takes %d together",
			asks, q.AnswerTokens, h.Role, r.WindowTokens))
	}
	need = r.expense(asks, q.AnswerTokens)
	if why := o.spent.reserve(h.Role, r, c.spent[h.Role], need); why != "" {
		return q, r, need, s.Refuse(engine.CodeQuota, "model_chat: "+why)
	}
	return q, r, need, 0
}

// tokens is how long the question is, estimated.
func (q *Question) tokens() int64 { return overheadTokens + estimateTokens(q.System, q.Prompt) }

// settle books what a question came to in the place of what was reserved for it.
func (o *modelOpened) settle(c *modelCall, r *Role, q *Question, reserved expense, a *Answer, err error) {
	in, out := min(max(0, a.InputTokens), maxModelNumber), min(max(0, a.OutputTokens), maxModelNumber)
	switch {
	case in+out > 0:
	case err == nil:
		in, out = q.tokens(), estimateTokens(a.Text)
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		in = q.tokens() // it was sent, and is billed
	}
	actual := r.expense(in, out)
	o.spent.book(q.Role, expense{actual.tokens - reserved.tokens, actual.cost - reserved.cost})
	if c.spent == nil {
		c.spent = map[string]expense{}
	}
	c.spent[q.Role] = c.spent[q.Role].plus(actual)
}
