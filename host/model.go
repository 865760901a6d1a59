package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// modelQuestion is the fuel for a question, beside that for its bytes.
const modelQuestion = 100_000

// Model grants questions to models: to those of Roles by the import model_chat, within
// their windows and budgets, and to Ask by model_ask. A zero is the default, a negative
// number an error.
type Model struct {
	// Roles are the models that the guest may ask, by their names.
	Roles map[string]ModelRole
	// Ask answers a request. What is in the bytes is between the guest and Ask. It must
	// return when ctx ends, which it does with the guest's call: raise Limits.Timeout
	// to what an answer takes. The guest is told that an error happened, and nothing of
	// its text; with [ErrQuota] in it, the guest gets [CodeQuota]. Ask must be safe for
	// concurrent use, and must neither keep nor change request. It must not call the
	// module that asks. Required without Roles.
	Ask func(ctx context.Context, request []byte) ([]byte, error)
	// Calls is how often a guest may ask within one call. Default 4, and 32 with Roles.
	Calls int
	// RequestBytes and ReplyBytes bound a question and an answer. Default 1 MiB each.
	RequestBytes, ReplyBytes int
}

// withDefaults returns a copy with its zero fields filled in.
func (m *Model) withDefaults() (*Model, error) {
	if m == nil {
		return nil, nil //nolint:nilnil // no grant
	}
	if m.Ask == nil && len(m.Roles) == 0 {
		return nil, errors.New("Grants.Model.Ask is nil; give it a function that asks a model, or name Roles")
	}
	if err := negative(
		field{"Grants.Model.Calls", int64(m.Calls)}, field{"Grants.Model.RequestBytes", int64(m.RequestBytes)},
		field{"Grants.Model.ReplyBytes", int64(m.ReplyBytes)},
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

// modelAsk is the import model_ask: a block with the answer, 0 for an empty one.
func modelAsk(g guest, stack []uint64) {
	ctx, s := g.enter("model_ask")
	m := s.caps.model
	s.caps.use.model.Add(1)
	g.spend(modelQuestion)
	request := optional(g, "model_ask", stack[0])
	switch {
	case request == "":
		stack[0] = s.refuse(CodeInvalid, "model_ask: the request is empty")
		return
	case len(request) > m.RequestBytes:
		stack[0] = s.refuse(CodeTooLarge, fmt.Sprintf("model_ask: the request has %d bytes, %d are allowed", len(request), m.RequestBytes))
		return
	case s.asked >= m.Calls:
		stack[0] = s.refuse(CodeQuota, fmt.Sprintf("model_ask: %d questions are allowed in a call", m.Calls))
		return
	}
	s.asked++
	var reply []byte
	err := guard(func() (err error) {
		reply, err = m.Ask(ctx, []byte(request))
		return err
	})
	g.leave()
	stack[0] = 0
	switch {
	case err != nil:
		stack[0] = s.failed(ctx, "model_ask", err)
	case len(reply) > m.ReplyBytes:
		stack[0] = s.refuse(CodeTooLarge, fmt.Sprintf("model_ask: the answer has %d bytes, %d are allowed", len(reply), m.ReplyBytes))
	case len(reply) > 0:
		stack[0] = g.store("model_ask", reply)
	}
}
