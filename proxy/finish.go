package proxy

import (
	"context"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy/money"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/thread"
)

// finish accounts for an answer, ends the run if the answer does, and considers a compaction. Delivered means that the
// client got all of it.
func (x *exchange) finish(ctx context.Context, a *wire.Answer, delivered bool) {
	x.s.stats.answers.Add(1)
	if x.ln == nil {
		switch {
		case x.fetched: // maybe several times
			x.paid(ctx, a)
		case !x.unpaid(ctx, a):
			x.s.sideBill(x, a)
		}
		if a.Done && delivered {
			x.observed(ctx, a)
		}
		return
	}
	x.ln.Lock()
	defer x.ln.Unlock()
	at := x.attach()
	if !x.unpaid(ctx, a) {
		x.account(a)
	}
	if !a.Done || !delivered {
		x.save(ctx)
		return
	}
	x.ln.Open = false
	x.ln.Answered, x.ln.Usage = x.s.cfg.Now(), a.Usage
	if x.ln.Answer == nil || !x.gates {
		x.ln.Answer = wire.AnswerKeys(x.proto, a.Blocks)
	}
	if x.why == "" {
		x.observed(ctx, a)
		if len(a.Calls()) == 0 {
			x.endRun(ctx, at, abi.TerminationNatural)
		}
	}
	x.save(ctx)
	if x.why == "" {
		x.consider(at) //nolint:contextcheck // it outlives the request
	}
}

// account adds one request to the lane's account.
func (x *exchange) account(a *wire.Answer) {
	x.ln.Money.Add(&money.Call{
		At: x.at, Protocol: x.proto, Model: x.model, Sent: x.sent, Original: x.original, Same: !x.acted,
		Usage: a.Usage, Counted: a.Counted, Threshold: threshold(x.id.client, x.s.window()), USD: x.s.cfg.Price(x.model),
	})
}

// threshold is at how many tokens a client is known to compact by itself.
func threshold(client string, window int64) int64 {
	switch client {
	case "claude":
		return window - 33_000
	case "codex":
		return window * 9 / 10
	case "pi":
		return window - 16_384
	}
	return 0
}

// window is the context window that models are taken to have.
func (s *Server) window() int64 {
	if s.cfg.Compaction != nil {
		return s.cfg.Compaction.Policy.WindowTokens
	}
	return 200_000
}

// sideBill accounts for requests that have no lane.
func (s *Server) sideBill(x *exchange, a *wire.Answer) {
	r := money.RatesOf(x.proto, x.model)
	s.stats.addSide(a.Usage, r.Units(a.Usage), x.s.cfg.Price(x.model))
}

// observed fires the phases of an answer for plugins that only observe. What they answer all the same is counted, and has no effect.
func (x *exchange) observed(ctx context.Context, a *wire.Answer) {
	rt := x.s.cfg.Runtime
	if rt == nil || x.why != "" {
		return
	}
	if !x.replaces && len(rt.Order(abi.AfterInference)) > 0 {
		if out, err := x.show(ctx, a); err != nil || out.Response != nil || len(out.Edits) > 0 {
			x.s.stats.late.Add(1)
		}
	}
	if x.gates || len(rt.Order(abi.ToolGate))+len(rt.Order(abi.BeforeToolExecute)) == 0 {
		return
	}
	for _, o := range a.Calls() {
		call := o.Call()
		x.gate(ctx, &o, &call)
	}
}

// endRun ends the run under way, if there is one.
func (x *exchange) endRun(ctx context.Context, at *attached, how abi.TerminationType) {
	if x.ln.Run == "" {
		return
	}
	id := x.identity()
	rt := x.s.cfg.Runtime
	if rt != nil && len(rt.Order(abi.RunEnd)) > 0 {
		_, err := rt.Fire(ctx, at.state, phases.Frame{
			Phase: abi.RunEnd, Run: id, Step: x.ln.Step, Messages: x.flat(),
			End: &abi.RunEnding{Termination: how, Steps: x.ln.Step, Usage: x.ln.Usage.ABI()},
		})
		if err != nil {
			x.s.stats.late.Add(1)
		}
	}
	x.record(func(r Records) error {
		return r.End(id.RunID, thread.RunEnd{At: x.s.cfg.Now(), Type: string(how), Steps: x.ln.Step})
	})
	at.answers = append(at.answers[max(0, len(at.answers)-63):], x.ln.Step)
	x.ln.Run, x.ln.Step = "", 0
	if at.state != nil {
		at.state = rt.NewState(at.state.Export())
	}
}

// billPart accounts for a part of an answer that was continued.
func (x *exchange) billPart(u wire.Usage) {
	r := money.RatesOf(x.proto, x.model)
	if x.ln == nil {
		x.s.stats.addSide(u, r.Units(u), x.s.cfg.Price(x.model))
		return
	}
	x.ln.Lock()
	defer x.ln.Unlock()
	x.ln.Money.Continued(u, r.Units(u), x.s.cfg.Price(x.model))
}
