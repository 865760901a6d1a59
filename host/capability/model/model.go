package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/mortise-dev/mortise/internal/engine"
)

// modelQuestion is the fuel for a question, in addition to that for its bytes.
const modelQuestion = 100_000

// Grant grants questions to models: to those of Roles by the import model_chat, within
// their windows and budgets, and to Ask by model_ask. A zero is the default, a negative
// number an error.
type Grant struct {
	// Roles are the models that the guest may ask, by their names.
	Roles map[string]Role
	// Ask answers a request. What is in the bytes is between the guest and Ask. It must
	// return when ctx ends, which it does with the guest's call: raise Limits.Timeout
	// to what an answer takes. The guest receives that an error happened, and nothing of
	// its text; with [ErrQuota] in it, the guest gets the code for a quota. Ask must be safe for
	// concurrent use, and must neither keep nor change request. It must not call the
	// module that asks. Required without Roles.
	Ask func(ctx context.Context, request []byte) ([]byte, error)
	// Calls is how often a guest may ask within one call. Default 4, and 32 with Roles.
	Calls int
	// RequestBytes and ReplyBytes bound a question and an answer. Default 1 MiB each.
	RequestBytes, ReplyBytes int
}

// Capability implements host.Capability.
func (*Grant) Capability() string { return "model" }

// modelOpened is an open grant.
type modelOpened struct {
	grant *Grant
	uses  *atomic.Int64
	spent *ledger
}

// Open implements host.Capability.
func (m *Grant) Open(env *engine.Env) (*engine.Opened, error) {
	o := &modelOpened{m, env.Use.Counter("model"), engine.Keep(env.Use, "model ledger", func() *ledger {
		l := new(ledger)
		env.Use.Count("model_tokens", func() int64 { return l.total().tokens })
		env.Use.Count("model_cost", func() int64 { return l.total().cost })
		return l
	})}
	out := &engine.Opened{Blocking: true, Functions: []engine.HostFunc{
		engine.Function(importModelInfo, o.info), engine.Function(importModelChat, o.chat),
	}}
	if m.Ask != nil {
		out.Functions = append(out.Functions, engine.Function("model_ask", o.ask))
	}
	return out, nil
}

// modelCall is what a call has asked so far.
type modelCall struct {
	asked int
	// spent is what questions to roles came to.
	spent map[string]expense
}

// Lacks reports whether an import is not offered: without Ask there is no model_ask.
func (m *Grant) Lacks(_, name string) bool { return name == "model_ask" && m.Ask == nil }

// Checked implements host.Capability.
func (m *Grant) Checked(string) (engine.Capability, error) {
	if m.Ask == nil && len(m.Roles) == 0 {
		return nil, errors.New("model.Grant.Ask is nil; give it a function that asks a model, or name Roles")
	}
	if err := engine.Negative(
		engine.Field{Name: "model.Grant.Calls", Value: int64(m.Calls)}, engine.Field{Name: "model.Grant.RequestBytes", Value: int64(m.RequestBytes)},
		engine.Field{Name: "model.Grant.ReplyBytes", Value: int64(m.ReplyBytes)},
	); err != nil {
		return nil, err
	}
	out := *m
	calls := 4
	if len(m.Roles) > 0 {
		calls = 32
	}
	out.Calls = cmp.Or(m.Calls, calls)
	out.RequestBytes = cmp.Or(m.RequestBytes, 1<<20)
	out.ReplyBytes = cmp.Or(m.ReplyBytes, 1<<20)
	var err error
	if out.Roles, err = roles(m.Roles); err != nil {
		return nil, err
	}
	return &out, nil
}

// ask is the import model_ask: a block with the answer, 0 for an empty one.
func (o *modelOpened) ask(g engine.Guest, stack []uint64) {
	ctx, s := g.Enter("model_ask")
	m, c := o.grant, engine.InCall[modelCall](s, o)
	o.uses.Add(1)
	g.Spend(modelQuestion)
	request := engine.Optional(g, "model_ask", stack[0])
	switch {
	case request == "":
		stack[0] = s.Refuse(engine.CodeInvalid, "model_ask: the request is empty")
		return
	case len(request) > m.RequestBytes:
		stack[0] = s.Refuse(engine.CodeTooLarge, fmt.Sprintf("model_ask: the request has %d bytes, %d are allowed", len(request), m.RequestBytes))
		return
	case c.asked >= m.Calls:
		stack[0] = s.Refuse(engine.CodeQuota, fmt.Sprintf("model_ask: %d questions are allowed in a call", m.Calls))
		return
	}
	c.asked++
	var reply []byte
	err := engine.Guard(func() (err error) {
		reply, err = m.Ask(ctx, []byte(request))
		return err
	})
	g.Leave()
	stack[0] = 0
	switch {
	case err != nil:
		stack[0] = s.Failed(ctx, "model_ask", err)
	case len(reply) > m.ReplyBytes:
		stack[0] = s.Refuse(engine.CodeTooLarge, fmt.Sprintf("model_ask: the answer has %d bytes, %d are allowed", len(reply), m.ReplyBytes))
	case len(reply) > 0:
		stack[0] = g.Store("model_ask", reply)
	}
}
