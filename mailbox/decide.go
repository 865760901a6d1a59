package mailbox

import (
	"context"
	"errors"
	"fmt"
)

// Decide hands decisions to a run: one under way takes them at once if it can, and else they are queued for it, and
// it gets them when it comes to wait. True means that they are kept, whatever ends meanwhile; not that a call waits for them: a
// decision that is too late is recorded with its dispatch ([Dispatch.LastError]), and the run stays as it was. It
// is false when there is no such run, or it has ended. As far as the [Runtime] can tell (see [Judge]) it is [ErrRefused] when the run waits, and
// not for that, and [ErrDecided] when that was decided before.
func (m *Mailbox) Decide(ctx context.Context, run string, decisions ...Decision) (bool, error) {
	r, found, err := m.Run(ctx, run)
	if err != nil || !found || r.Status == RunDone || len(decisions) == 0 {
		return false, err
	}
	t, image, err := m.imageOf(ctx, r.Thread)
	if err != nil {
		return false, err
	}
	request := Request{Thread: r.Thread, Tenant: t.Tenant, Run: run, Decisions: decisions, Mode: modeResume}
	if t.Claim != nil && t.Open.ID == run && t.Open.Status == RunRunning {
		request.Decisions, err = m.bound(run, image, decisions)
		if errors.Is(err, ErrDecided) {
			return false, wrap("decision for run", run, err)
		} // what it does not wait for yet it may come to wait for
		accepted, err := m.decideLive(ctx, request, t.Claim.Dispatch)
		if accepted || err != nil {
			return accepted, err
		}
		request.Late = true
	}
	_, err = m.SubmitBackground(ctx, request)
	if errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLarge) {
		return false, nil // it has ended meanwhile
	}
	return err == nil, err
}

// decideLive reports whether a run under way has accepted decisions. One that did may be reported not to have. An error is one of
// the decisions.
func (m *Mailbox) decideLive(ctx context.Context, r Request, dispatch string) (bool, error) {
	accepted, err := m.deliver(ctx, Dispatch{ID: dispatch, Thread: r.Thread, RunID: r.Run}, m.cfg.NewID(), r)
	if errors.Is(err, ErrTooLarge) {
		return false, wrap("decision for run", r.Run, err)
	}
	if err != nil {
		m.cfg.Logger.WarnContext(ctx, "mailbox_decision_not_delivered", "thread", r.Thread, "run", r.Run, "error", err)
	}
	return accepted && err == nil, nil
}

// bound binds decisions to what a run waits for, if the runtime can.
func (m *Mailbox) bound(run string, image []byte, list []Decision) ([]Decision, error) {
	judge, ok := m.cfg.Runtime.(Judge)
	if !ok {
		return list, nil
	}
	return judge.Judge(run, image, list)
}

// judge binds the decisions of a request that is to be queued. It refuses them when the run waits, and not for all of them: then
// nothing that comes before they are executed can make them fit. Messages are queued all the same, and so is what was
// queued before under the same key.
func (m *Mailbox) judge(ctx context.Context, e *entry) error {
	r := e.Request
	if _, ok := m.cfg.Runtime.(Judge); !ok || len(r.Decisions) == 0 {
		return nil
	}
	t, image, err := m.imageOf(ctx, r.Thread)
	if err != nil {
		return err
	}
	open := t.Open
	if open.ID == "" && r.Run == "" && r.decides() && !r.At.After(m.now()) {
		return m.refused(ctx, *e, "", fmt.Errorf("%w: the thread has no run that could wait for it", ErrRefused))
	}
	if open.ID == "" || r.Run != "" && r.Run != open.ID {
		return nil
	}
	list, refusal := m.bound(open.ID, image, r.Decisions)
	waits := open.Status == RunWaiting && !r.At.After(m.now())
	if refusal != nil && (waits || errors.Is(refusal, ErrDecided)) && r.decides() && !r.Late {
		if err := m.refused(ctx, *e, open.ID, refusal); err != nil {
			return err
		}
	}
	r.Decisions = list
	e.Payload, err = m.encode(r)
	return err
}

// refused returns a refusal of decisions, unless they were queued before under the same key.
func (m *Mailbox) refused(ctx context.Context, e entry, run string, refusal error) error {
	if _, before, err := m.submitted(ctx, e); err == nil && before {
		return nil
	} else if err != nil {
		refusal = errors.Join(err, refusal)
	}
	m.cfg.Logger.WarnContext(ctx, "mailbox_decision_refused", "thread", e.Thread, "run", run)
	return wrap("decision for run", run, refusal)
}

// decides reports whether a request brings nothing but decisions.
func (r Request) decides() bool { return len(r.Messages) == 0 }
