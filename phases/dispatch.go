package phases

import (
	"context"
	"errors"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// errNoTime is an effect that was not executed because earlier ones took too
// long.
var errNoTime = errors.New("the effects before it took all the time")

// custom is an effect that a plugin executes after the commit.
type custom struct {
	id      int64
	handler *hook
	effect  *abi.Effect
	by      string
	// state is that right after the commit.
	state state.Snapshot
}

// dispatch executes the custom effects one after another, in the order in which
// they were requested. One that fails becomes a dead letter, and the next one is executed.
func (p *pass) dispatch(ctx context.Context) {
	p.report.Effects = len(p.customs)
	if len(p.customs) == 0 {
		return
	}
	var letters []any
	start := p.r.cfg.Now()
	for i := range p.customs {
		e := &p.customs[i]
		err := errNoTime
		if p.r.cfg.Now().Sub(start) <= p.r.cfg.HandlerTime {
			err = p.execute(ctx, e)
		}
		if err == nil {
			continue
		}
		p.report.EffectsFailed++
		a := abi.Action{ID: e.id, Key: e.handler.name, Payload: e.effect.Payload, By: e.by}
		letters = append(letters, letter(&a, oneLine(err.Error(), p.r.cfg.Limits.TextBytes))...)
	}
	if err := p.r.bury(context.WithoutCancel(ctx), p.st, letters); err != nil {
		p.r.cfg.Logger.ErrorContext(ctx, "dead letters lost", "run_id", p.frame.Run.RunID, "count", len(letters), "error", err)
	}
}

func (p *pass) execute(ctx context.Context, e *custom) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c := p.newCall(e.handler, 1, e.state, e.state.Revision())
	c.event.Effect = &abi.Effect{Type: abi.EffectCustom, Key: e.handler.name[len(e.handler.plugin.name)+1:], Payload: e.effect.Payload, Note: e.effect.Note}
	_ = p.invoke(ctx, []*call{c}) // its error is the fault of the call, too
	switch {
	case c.quarantined:
		return errQuarantined
	case c.fault != nil:
		c.err = c.fault
	case !noOpinion(c.reply):
		c.refused = []Refusal{{What: "reply", Reason: "who carries out an effect has nothing to reply; schedule an action to change the run"}}
		c.err = ErrRefused
	}
	return c.err
}
