package mailbox

import (
	"context"
	"errors"
)

// poll does what a thread is due for, and reports whether it did something.
func (m *Mailbox) poll(ctx context.Context, h Thread) (bool, error) {
	if h.Claim != nil {
		if m.renews(h) {
			return false, nil
		}
		_, ok, err := m.expire(ctx, h.ID)
		return ok, err
	}
	if h.lapsed(m.now()) {
		if run, err := m.lapse(ctx, h.ID); run != "" || err != nil {
			return true, err
		}
	}
	return m.take(ctx, h)
}

// errCrowded is a claim that was not made, or was given back, since all processes together had as many as they may.
var errCrowded = errors.New("as many executions as there may be")

// take claims a thread and executes what it was claimed for, if a worker is free. It reports whether it did.
func (m *Mailbox) take(ctx context.Context, h Thread) (bool, error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	if err := m.reserve(h.Tenant, true); err != nil {
		return false, nil // the others may have room
	}
	asked := ctx
	ctx, cancel := m.lasting(ctx)
	defer cancel()
	claimed, ok, err := m.claim(ctx, h.ID, m.claimRequest())
	if err == nil && ok && (asked.Err() != nil || m.shut()) {
		_, err = m.settle(ctx, claimed.hold(), settlement{Verdict: verdictGiveBack})
		ok = false
	}
	if err == nil && ok {
		if ok, err = m.admitted(ctx, claimed, settlement{Verdict: verdictGiveBack}); err == nil && !ok {
			err = errCrowded
		}
	}
	if err != nil || !ok {
		m.release(h.Tenant)
		return false, err
	}
	m.spawn(claimed) //nolint:contextcheck // see spawn
	return true, nil
}

// lasting is a context in which to claim a thread. It outlives the call that asks for it, and the loops: what was claimed
// has to be known then, or no process executes it until its lease is over.
func (m *Mailbox) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), min(m.cfg.Waits.Live, m.cfg.Lease.Duration/2))
}
