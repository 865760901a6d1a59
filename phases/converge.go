package phases

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

var errQuarantined = errors.New("in quarantine")

// Report counts what became of actions and effects.
type Report struct {
	// Rounds of actions, at least 1. Actions that a round schedules for the same
	// phase make the next.
	Rounds int
	// Processed actions were executed. Failed ones are dead letters, as are those
	// that were left when the phase did not come to an end.
	Processed int
	Failed    int
	// Skipped actions wait for another phase. Orphaned ones wait for a plugin that
	// is not here.
	Skipped  int
	Orphaned int
	// Effects were asked for; EffectsFailed of them are dead letters.
	Effects       int
	EffectsFailed int
	// Diverged means that actions were left after the last round, or when
	// Config.HandlerTime was over.
	Diverged bool
}

// converge executes the actions that are due, until there are none. Each is a
// commit of its own, and takes the action from the queue.
func (p *pass) converge(ctx context.Context) error {
	p.report.Rounds = 1
	start := p.r.cfg.Now()
	for round := 1; ; round++ {
		due := p.due()
		if len(due) == 0 {
			return nil
		}
		if round > p.r.cfg.Limits.Rounds {
			return p.diverged(ctx, due, fmt.Sprintf("after %d rounds", p.r.cfg.Limits.Rounds))
		}
		p.report.Rounds = round
		for i := range due {
			if p.r.cfg.Now().Sub(start) > p.r.cfg.HandlerTime {
				return p.diverged(ctx, p.due(), fmt.Sprintf("within %v", p.r.cfg.HandlerTime))
			}
			if err := p.act(ctx, &due[i]); err != nil {
				return err
			}
		}
	}
}

// due returns the actions of the phase, in the order in which they were
// scheduled, and counts the others.
func (p *pass) due() []abi.Action {
	var due []abi.Action
	p.report.Skipped, p.report.Orphaned = 0, 0
	for _, a := range pendingOf(p.st.store.Snapshot()) {
		switch {
		case p.r.actions[a.Key] == nil:
			p.report.Orphaned++
		case a.Phase != p.frame.Phase:
			p.report.Skipped++
		default:
			due = append(due, a)
		}
	}
	return due
}

// act executes one action.
func (p *pass) act(ctx context.Context, a *abi.Action) error {
	h := p.r.actions[a.Key]
	attempt, failed := 0, false
	err := p.commit(ctx, func() error {
		attempt++
		c := p.newCall(h, attempt, p.draft.tx, p.draft.tx.Base().Revision())
		shown := *a
		c.event.Action, shown.Key = &shown, h.name[len(h.plugin.name)+1:]
		if err := p.invoke(ctx, []*call{c}); err != nil {
			return err // It stays in the queue.
		}
		p.final = append(p.final, c)
		p.settleAction(c)
		failed = c.err != nil || c.quarantined
		return p.take(a, failed, c)
	})
	switch {
	case err != nil:
		return err
	case failed:
		p.report.Failed++
	default:
		p.report.Processed++
	}
	return errors.Join(p.fatal...)
}

// settleAction settles the reply of an action, which is alone and conflicts with no other.
func (p *pass) settleAction(c *call) {
	p.touched = touched{}
	p.settle(c)
}

// take takes an action from the queue, in the commit of its reply.
func (p *pass) take(a *abi.Action, failed bool, c *call) error {
	tx := p.draft.tx
	err := tx.Update(p.r.pending, opDrop, []any{a.ID})
	if failed && err == nil {
		cause := cmp.Or(c.err, errQuarantined)
		err = tx.Update(p.r.dead, opPush, letter(a, oneLine(cause.Error(), p.r.cfg.Limits.TextBytes)))
	}
	if err != nil {
		tx.Discard()
		return fmt.Errorf("phases: %s: action %q: %w", p.frame.Phase, a.Key, err)
	}
	tx.Accept()
	return nil
}

// diverged makes dead letters of the actions that are left, so that the next
// phase does not begin with them.
func (p *pass) diverged(ctx context.Context, due []abi.Action, when string) error {
	cause := fmt.Sprintf("phase %s did not converge %s", p.frame.Phase, when)
	p.report.Diverged = true
	fails := false
	tx := p.st.store.Begin()
	for i := range due {
		h := p.r.actions[due[i].Key]
		fails = fails || h.OnFailure == abi.FailRun
		p.draft.tx = tx
		if err := p.take(&due[i], true, &call{verdict: verdict{err: errors.New(cause)}}); err != nil {
			return err
		}
		p.report.Failed++
		p.r.cfg.Logger.WarnContext(ctx, "action does not come to an end", "action", due[i].Key, "phase", string(p.frame.Phase), "run_id", p.frame.Run.RunID)
	}
	if _, err := p.st.store.Commit(ctx, tx); err != nil {
		return fmt.Errorf("phases: %s: %w", p.frame.Phase, err)
	}
	if fails {
		return fmt.Errorf("phases: %w: %s", ErrNotConverged, cause)
	}
	return nil
}
