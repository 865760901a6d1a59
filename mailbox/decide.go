package mailbox

import (
	"context"
	"errors"
)

// Decide hands decisions to a run: one under way takes them at once if it can, and else they are queued for it, and
// it gets them when it comes to wait. True says that they are kept, whatever ends meanwhile; not that a call waits for them. It
// is false when there is no such run, or it has ended.
func (m *Mailbox) Decide(ctx context.Context, run string, decisions ...Decision) (bool, error) {
	r, found, err := m.queue.Run(ctx, run)
	if err != nil || !found || r.Status == RunDone || len(decisions) == 0 {
		return false, err
	}
	h, err := m.queue.Head(ctx, r.Thread)
	if err != nil {
		return false, err
	}
	request := Request{Thread: r.Thread, Tenant: h.Tenant, Run: run, Decisions: decisions, Mode: ModeResume}
	if h.Claim != nil && h.Open.ID == run && h.Open.Status == RunRunning {
		taken, err := m.decideLive(ctx, request, h.Claim.Dispatch)
		if taken || err != nil {
			return taken, err
		}
		request.Late = true
	}
	_, err = m.SubmitBackground(ctx, request)
	if errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLarge) {
		return false, nil // it has ended meanwhile
	}
	return err == nil, err
}

// decideLive says whether a run under way has taken decisions. One that did may not have been heard to say so. An error is one of
// the decisions.
func (m *Mailbox) decideLive(ctx context.Context, r Request, dispatch string) (bool, error) {
	payload, err := m.encode(r)
	if err != nil {
		return false, wrap("decision for run", r.Run, err)
	}
	d := Dispatch{ID: dispatch, Thread: r.Thread, RunID: r.Run}
	taken, err := m.deliver(ctx, d, Command{Kind: CommandDecision, ID: m.cfg.NewID(), Payload: payload})
	if err != nil {
		m.cfg.Logger.WarnContext(ctx, "mailbox_decision_not_delivered", "thread", r.Thread, "run", r.Run, "error", err)
	}
	return taken && err == nil, nil
}
