package mailbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

// shared reports whether executions are bounded over all processes.
func (m *Mailbox) shared() bool { return m.cfg.Limits.Claims > 0 || m.cfg.Limits.TenantClaims > 0 }

// held counts the claims of all processes by tenant, if they are bounded.
func (m *Mailbox) held(ctx context.Context) (claims map[string]int, total int, err error) {
	if !m.shared() {
		return nil, 0, nil
	}
	ctx, end := m.queue.Begin(ctx, Operation{Name: queue.OpClaims})
	claims, err = m.queue.Claims(ctx)
	end(len(claims) == 0, err)
	if err != nil {
		return nil, 0, fmt.Errorf("mailbox: count of claims: %w", err)
	}
	for _, n := range claims {
		total += n
	}
	return claims, total, nil
}

// over reports whether there would be too many claims with so many more.
func (m *Mailbox) over(claims map[string]int, total int, tenant string, more int) bool {
	return m.cfg.Limits.Claims > 0 && total+more > m.cfg.Limits.Claims ||
		m.cfg.Limits.TenantClaims > 0 && claims[tenant]+more > m.cfg.Limits.TenantClaims
}

// full are the tenants that have as many claims as they may, and how many more
// there may be in all; -1 is any number.
func (m *Mailbox) full(claims map[string]int, total int) (tenants []string, left int) {
	left = -1
	if m.cfg.Limits.Claims > 0 {
		left = max(m.cfg.Limits.Claims-total, 0)
	}
	if m.cfg.Limits.TenantClaims > 0 {
		for tenant, n := range claims {
			if n >= m.cfg.Limits.TenantClaims {
				tenants = append(tenants, tenant)
			}
		}
	}
	return tenants, left
}

// admitted counts after a claim was made, and reports whether its execution may begin. Of
// those that claim at once the last to count sees all, see [queue.Queue.Claims], so that never more begin than may. One that may not is given
// back, and costs no attempt.
func (m *Mailbox) admitted(ctx context.Context, k queue.State, otherwise queue.Settlement) (bool, error) {
	claims, total, err := m.held(ctx)
	if err == nil && !m.over(claims, total, k.Thread.Tenant, 0) {
		return true, nil
	}
	if _, settled := m.queue.Settle(context.WithoutCancel(ctx), k.Hold(), otherwise); settled != nil && err == nil {
		err = settled
	}
	return false, err
}

// allowed refuses a foreground request that would be refused anyway, before it interrupts anything, and one that would be one
// execution too many. One that replaces another does not count.
func (m *Mailbox) allowed(ctx context.Context, r Request) error {
	if err := m.acceptable(ctx, r); err != nil {
		return err
	}
	claims, total, err := m.held(ctx)
	if err != nil || !m.over(claims, total, r.Tenant, 1) {
		return err
	}
	h, err := m.queue.Thread(ctx, r.Thread)
	if err != nil || h.Claim != nil {
		return err
	}
	return wrap("thread", r.Thread, fmt.Errorf("%w: all processes together have as many executions as they may; submit in the background", ErrFull))
}

// jitter is a random part of a time, so that those who met do not meet again.
func jitter(d time.Duration) time.Duration {
	return time.Duration(rand.Int64N(int64(d) + 1)) //nolint:gosec // nothing depends on its being guessed
}
