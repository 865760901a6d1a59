package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// wake asks the loop to look now.
func (m *Mailbox) wake() {
	select {
	case m.poke <- struct{}{}:
	default:
	}
}

// schedule carries out what is due, whenever it is.
func (m *Mailbox) schedule(ctx context.Context) {
	var warned time.Duration
	for {
		m.follow(ctx)
		next, err := m.round(ctx)
		warned = m.checkClock(ctx, warned)
		if err != nil && ctx.Err() == nil {
			m.cfg.Logger.WarnContext(ctx, "mailbox_round_failed", "error", err)
		}
		pause := m.cfg.Poll
		if !next.IsZero() {
			pause = min(pause, max(next.Sub(m.queue.now()), 0))
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-m.poke:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// round looks once at all that is due and says when to look again.
func (m *Mailbox) round(ctx context.Context) (time.Time, error) {
	free, skip := m.room()
	if free == 0 {
		return time.Time{}, nil // whoever ends wakes the loop
	}
	claims, total, err := m.held(ctx)
	if err != nil {
		return time.Time{}, err
	}
	full, left := m.full(claims, total)
	if left == 0 {
		return time.Time{}, nil // what ends elsewhere is seen at the next poll
	}
	if left > 0 {
		free = min(free, left)
	}
	now, err := m.queue.time(ctx)
	if err != nil {
		return time.Time{}, err
	}
	limit := free + m.asides.count(now, m.cfg.MaxNackDelay)
	due, next, err := m.due(ctx, DueQuery{By: now, Skip: append(skip, full...), Limit: limit})
	if err != nil {
		return time.Time{}, err
	}
	moved, later, err := m.lookAt(ctx, due, free)
	if errors.Is(err, errCrowded) {
		return m.queue.now().Add(jitter(m.cfg.Poll)), nil
	}
	if err != nil {
		return time.Time{}, err
	}
	if moved && len(due) == limit {
		m.wake()
	}
	return earliest(next, later), nil
}

// claimers is how many threads a process looks at at once: a claim is a round trip to the store, and workers wait for it.
const claimers = 16

// lookAt looks at threads that are due, most of them at most. One that fails is set aside, and the others have their turn. It
// reports whether another look would find others, and when the first one that was set aside is to be looked at again.
func (m *Mailbox) lookAt(ctx context.Context, due []Head, most int) (moved bool, later time.Time, err error) {
	var mu sync.Mutex
	var working sync.WaitGroup
	free := make(chan struct{}, claimers)
	failed := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return err != nil
	}
	for i := range due {
		if until := m.asides.until(due[i].Thread, m.queue.now()); !until.IsZero() {
			mu.Lock()
			later = earliest(later, until)
			mu.Unlock()
			continue
		}
		if most == 0 {
			break
		}
		most--
		free <- struct{}{}
		if failed() {
			break
		}
		working.Go(func() {
			defer func() { <-free }()
			did, again, failure := m.lookOrAside(ctx, due[i])
			mu.Lock()
			defer mu.Unlock()
			moved, later, err = moved || did, earliest(later, again), cmp.Or(err, failure)
		})
	}
	working.Wait()
	return moved, later, err
}

// lookOrAside looks at a thread, and sets it aside when that fails. An error is one that concerns all threads.
func (m *Mailbox) lookOrAside(ctx context.Context, h Head) (moved bool, again time.Time, err error) {
	did, err := m.look(ctx, h)
	switch {
	case err == nil:
		m.asides.well(h.Thread)
		return did, time.Time{}, nil
	case errors.Is(err, errCrowded), ctx.Err() != nil:
		return false, time.Time{}, err
	}
	pause := m.setAside(ctx, h.Thread, err)
	if pause == 0 {
		return false, time.Time{}, err
	}
	return true, m.queue.now().Add(pause), nil
}

func (m *Mailbox) due(ctx context.Context, q DueQuery) (list []Head, next time.Time, err error) {
	ctx, end := m.queue.begin(ctx, Operation{Name: OpDue})
	list, next, err = m.cfg.Store.Due(ctx, q)
	end(len(list) == 0, err)
	if err != nil {
		err = fmt.Errorf("mailbox: what is due: %w", err)
	}
	return list, next, err
}

// room is how many workers are free, and which tenants have none.
func (m *Mailbox) room() (free int, skip []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cfg.TenantWorkers > 0 {
		for tenant, n := range m.tenants {
			if n >= m.cfg.TenantWorkers {
				skip = append(skip, tenant)
			}
		}
	}
	return max(m.cfg.Workers-m.claims, 0), skip
}

// look does what a thread is due for, and says whether it did something.
func (m *Mailbox) look(ctx context.Context, h Head) (bool, error) {
	if h.Claim != nil {
		if m.renews(h) {
			return false, nil
		}
		k, ok, err := m.queue.Expire(ctx, h.Thread)
		if ok {
			m.settled(k.Dispatch)
		}
		return ok, err
	}
	if h.lapsed(m.queue.now()) {
		if run, err := m.queue.Lapse(ctx, h.Thread); run != "" || err != nil {
			return true, err
		}
	}
	return m.take(ctx, h)
}

// errCrowded is a claim that was not made, or was given back, since all processes together had as many as they may.
var errCrowded = errors.New("as many executions as there may be")

// takeOne is take, unless all processes together have as many executions as they may: [errCrowded].
func (m *Mailbox) takeOne(ctx context.Context, h Head) (bool, error) {
	claims, total, err := m.held(ctx)
	if err == nil && m.over(claims, total, h.Tenant, 1) {
		err = errCrowded
	}
	if err != nil {
		return false, err
	}
	return m.take(ctx, h)
}

// take claims a thread and carries out what it was claimed for, if a worker is free. It says
// whether it did.
func (m *Mailbox) take(ctx context.Context, h Head) (bool, error) {
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	t := m.takes(h.Thread)
	if t == nil {
		return false, nil // somebody else here does it
	}
	done := false
	defer func() { m.took(h.Thread, t, done) }()
	if err := m.reserve(h.Tenant, true); err != nil {
		return false, nil // the others may have room
	}
	ctx, cancel := m.lasting(ctx)
	defer cancel()
	taken, ok, err := m.queue.Claim(ctx, h.Thread, m.claimRequest())
	if err == nil && ok && !m.Running() {
		_, err = m.queue.Settle(ctx, taken.hold(), Settlement{Verdict: GiveBack})
		ok = false
	}
	if err == nil && ok {
		if ok, err = m.admitted(ctx, taken, Settlement{Verdict: GiveBack}); err == nil && !ok {
			err = errCrowded
		}
	}
	if err != nil || !ok {
		m.release(h.Tenant)
		return false, err
	}
	m.spawn(taken) //nolint:contextcheck // see spawn
	done = true
	return true, nil
}

// taking is a claim under way. It is over when that is closed.
type taking struct {
	over chan struct{}
	// missed says that somebody else wanted to make it.
	missed bool
}

// takes begins a claim. It returns nil while another one of the thread is under way in this process: of the two one would find that there is
// nothing to do, and not that it is being done here.
func (m *Mailbox) takes(thread string) *taking {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.taking[thread]; t != nil {
		t.missed = true
		return nil
	}
	t := &taking{over: make(chan struct{})}
	m.taking[thread] = t
	return t
}

// took ends it. Who missed it looks again if nothing came of it.
func (m *Mailbox) took(thread string, t *taking, done bool) {
	m.mu.Lock()
	delete(m.taking, thread)
	again := t.missed && !done
	m.mu.Unlock()
	close(t.over)
	if again {
		m.wake()
	}
}

// lasting is a context in which to claim a thread. It goes on when whoever asks for it goes away, or the loops stop: what was claimed
// has to be known then, or nobody carries it out until its lease is over.
func (m *Mailbox) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), min(m.cfg.LiveWait, m.cfg.Lease/2))
}

// GC drops dispatches and events that are old enough.
func (m *Mailbox) GC(ctx context.Context) error {
	const batch = 1000
	now, err := m.queue.time(ctx)
	if err != nil {
		return fmt.Errorf("mailbox: gc: %w", err)
	}
	for _, q := range []PurgeQuery{
		{Statuses: []Status{Acked, Cancelled, Superseded}, Before: now.Add(-m.cfg.TTL), Limit: batch},
		{Statuses: []Status{DeadLetter}, Before: now.Add(-m.cfg.DeadTTL), Limit: batch},
	} {
		for n := batch; n == batch; {
			inner, end := m.queue.begin(ctx, Operation{Name: OpPurge})
			var err error
			n, err = m.cfg.Store.Purge(inner, q)
			end(n == 0, err)
			if err != nil {
				return fmt.Errorf("mailbox: gc: %w", err)
			}
		}
	}
	if m.pump == nil {
		return nil
	}
	if err := m.pump.log.PurgeEvents(ctx, now.Add(-m.cfg.EventTTL)); err != nil {
		return fmt.Errorf("mailbox: gc of events: %w", err)
	}
	return nil
}
