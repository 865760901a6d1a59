package mailbox

import (
	"context"
	"errors"

	"github.com/mortise-dev/mortise/internal/queue"
)

// poll does what a thread is due for, and reports whether it did something.
func (m *Mailbox) poll(ctx context.Context, h Thread) (bool, error) {
	if h.Claim != nil {
		if m.renews(h) {
			return false, nil
		}
		_, ok, err := m.queue.Expire(ctx, h.ID)
		return ok, err
	}
	if h.Lapsed(m.queue.Now()) {
		if run, err := m.queue.Lapse(ctx, h.ID); run != "" || err != nil {
			return true, err
		}
	}
	begun := m.beginClaim(h.ID)
	if begun == nil {
		return false, nil // another goroutine does it
	}
	done, err := m.take(ctx, h, queue.State{})
	m.endClaim(h.ID, begun, done)
	return done, err
}

// errCrowded is a claim that was not made, or was given back, since all processes together had as many as they may.
var errCrowded = errors.New("as many executions as there may be")

// takeOne is take, unless all processes together have as many executions as they may: [errCrowded].
func (m *Mailbox) takeOne(ctx context.Context, after queue.State) (bool, error) {
	h := after.Thread
	if m.pauses.has(h.Tenant) {
		return false, nil
	}
	claims, total, err := m.held(ctx)
	if err == nil && m.over(claims, total, h.Tenant, 1) {
		err = errCrowded
	}
	if err != nil {
		return false, err
	}
	return m.take(ctx, h, after)
}

// take claims a thread and executes what it was claimed for, if a worker is free. It reports whether it did. The caller has begun the claim.
func (m *Mailbox) take(ctx context.Context, h Thread, after queue.State) (bool, error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	if err := m.reserve(h.Tenant, true); err != nil {
		return false, nil // the others may have room
	}
	ctx, cancel := m.lasting(ctx)
	defer cancel()
	request := m.claimRequest()
	request.After = after
	claimed, ok, err := m.queue.Claim(ctx, h.ID, request)
	if err == nil && ok && !m.Running() {
		_, err = m.queue.Settle(ctx, claimed.Hold(), queue.Settlement{Verdict: queue.GiveBack})
		ok = false
	}
	if err == nil && ok {
		if ok, err = m.admitted(ctx, claimed, queue.Settlement{Verdict: queue.GiveBack}); err == nil && !ok {
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

// claiming is a claim under way. It is over when that is closed.
type claiming struct {
	over chan struct{}
	// done is set when the thread was claimed then, missed when another goroutine wanted to make it.
	done, missed bool
}

// beginClaim begins a claim. It returns nil while another one of the thread is under way in this process: of the two one would find that there is
// nothing to do, and not that it is being done here.
func (m *Mailbox) beginClaim(thread string) *claiming {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.claiming[thread]; t != nil {
		t.missed = true
		return nil
	}
	t := &claiming{over: make(chan struct{})}
	m.claiming[thread] = t
	return t
}

// endClaim ends it. When it was missed, and nothing came of it, the loop polls again.
func (m *Mailbox) endClaim(thread string, t *claiming, done bool) {
	m.mu.Lock()
	delete(m.claiming, thread)
	t.done = done
	again := t.missed && !done
	m.mu.Unlock()
	close(t.over)
	if again {
		m.wake()
	}
}

// lasting is a context in which to claim a thread. It outlives the call that asks for it, and the loops: what was claimed
// has to be known then, or no process executes it until its lease is over.
func (m *Mailbox) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), min(m.cfg.Waits.Live, m.cfg.Lease.Duration/2))
}
