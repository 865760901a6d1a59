package mailbox

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// allowed refuses a foreground request that would be refused anyway, before it interrupts anything: of another tenant, for a run that it
// cannot have, with an id that is taken, for what is paused. It refuses one that would be one execution too many, too; one that replaces
// another does not count.
func (m *Mailbox) allowed(ctx context.Context, r Request) error {
	m.mu.Lock()
	closing := m.closing
	m.mu.Unlock()
	if closing {
		return fmt.Errorf("mailbox: %w", ErrShutdown)
	}
	t, run, found, err := m.runOf(ctx, r.Thread, r.Run)
	if err != nil {
		return err
	}
	switch err := t.admits(r.Tenant); {
	case err != nil:
		return wrap("request for thread", r.Thread, err)
	case !t.PausedAt.IsZero():
		return wrap("thread", r.Thread, fmt.Errorf("%w since %s; resume it, or submit in the background", ErrPaused, t.PausedAt.Format(time.RFC3339)))
	case m.pauses.has(r.Tenant):
		return wrap("thread", r.Thread, fmt.Errorf("%w: its tenant, or the whole mailbox; resume that, or submit in the background", ErrPaused))
	case found && (run.Status == RunDone || run.Status != RunWaiting && len(r.Messages) > 0):
		// The interrupt would end the run that is to continue, under way or queued.
		return wrap("request for thread", r.Thread, fmt.Errorf("%w: run_id '%.80s' is not open for dispatch", ErrInvalid, r.Run))
	}
	_, taken, err := m.find(ctx, indexDispatch, r.DispatchIDHint)
	for _, id := range []string{r.Run, r.NewRun} {
		if err == nil && !taken && !found {
			_, taken, err = m.find(ctx, indexRun, id)
		}
	}
	if err == nil && taken {
		err = fmt.Errorf("%w: the id of its dispatch or run", ErrExists)
	}
	if err != nil {
		return wrap("request for thread", r.Thread, err)
	}
	claims, total, err := m.held(ctx)
	if err != nil || t.Claim != nil || !m.over(claims, total, r.Tenant, 1) {
		return err
	}
	return wrap("thread", r.Thread, fmt.Errorf("%w: all processes together have as many executions as they may; submit in the background", ErrFull))
}

// held counts the claims of all processes by tenant, if they are bounded.
func (m *Mailbox) held(ctx context.Context) (claims map[string]int, total int, err error) {
	if m.cfg.Limits.Claims <= 0 && m.cfg.Limits.TenantClaims <= 0 {
		return nil, 0, nil
	}
	claims, err = m.Claims(ctx)
	for _, n := range claims {
		total += n
	}
	return claims, total, err
}

// over reports whether there would be too many claims with so many more.
func (m *Mailbox) over(claims map[string]int, total int, tenant string, more int) bool {
	return m.cfg.Limits.Claims > 0 && total+more > m.cfg.Limits.Claims ||
		m.cfg.Limits.TenantClaims > 0 && claims[tenant]+more > m.cfg.Limits.TenantClaims
}

// full are the tenants that have as many claims as they may, and how many more there may be in all; -1 is any number.
func (m *Mailbox) full(claims map[string]int, total int) (tenants []string, left int) {
	left = -1
	if m.cfg.Limits.Claims > 0 {
		left = max(m.cfg.Limits.Claims-total, 0)
	}
	for tenant, n := range claims {
		if m.cfg.Limits.TenantClaims > 0 && n >= m.cfg.Limits.TenantClaims {
			tenants = append(tenants, tenant)
		}
	}
	return tenants, left
}

// admitted counts after a claim was made, and reports whether its execution may begin. Of those that claim at once the last to count sees
// all, see [Mailbox.Claims], so that never more begin than may. One that may not is given back, and costs no attempt.
func (m *Mailbox) admitted(ctx context.Context, k state, otherwise settlement) (bool, error) {
	claims, total, err := m.held(ctx)
	if err == nil && !m.over(claims, total, k.Thread.Tenant, 0) {
		return true, nil
	}
	_, settled := m.settle(context.WithoutCancel(ctx), k.hold(), otherwise)
	return false, cmp.Or(err, settled)
}

// jitter is a random part of a time, so that those who met do not meet again.
func jitter(d time.Duration) time.Duration {
	return time.Duration(rand.Int64N(int64(d) + 1)) //nolint:gosec // nothing depends on its being guessed
}
