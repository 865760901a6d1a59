package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// wake asks the loop to poll now.
func (m *Mailbox) wake() {
	select {
	case m.poke <- struct{}{}:
	default:
	}
}

// schedule executes what is due, whenever it is.
func (m *Mailbox) schedule(ctx context.Context) {
	var warned time.Duration
	for {
		next, err := m.round(ctx)
		if err != nil {
			m.starve()
		}
		warned = m.checkClock(ctx, warned)
		if err != nil && ctx.Err() == nil {
			m.warn(ctx, "mailbox_round_failed", err)
		}
		pause := m.cfg.Poll
		if !next.IsZero() {
			pause = min(pause, max(next.Sub(m.now()), 0))
		}
		if !wait(ctx, pause, m.poke) {
			return
		}
	}
}

// watchPause is how long to wait after the store could not be watched.
const watchPause = 250 * time.Millisecond

// watch polls as soon as a process has made something due, this one too. What it misses, the next poll finds.
func (m *Mailbox) watch(ctx context.Context) {
	for ctx.Err() == nil {
		notifications, err := m.watchDue(ctx)
		if err != nil {
			m.warn(ctx, "mailbox_not_watching", err)
			wait(ctx, watchPause)
			continue
		}
		for range notifications {
			m.wake()
		}
	}
}

// Poll does one round of what a Mailbox does between Start and Stop: it ends claims and waits whose time is over, and claims what is queued, as
// far as workers are free. It returns when that is done, and when something is due next, zero if nothing is known to be; what it has begun
// continues. It is for a program that is woken by a scheduler of its own: call [Mailbox.Recover] first, Poll at that time and whenever an
// execution has ended or a request came, [Mailbox.GC] from time to time, and Close.
func (m *Mailbox) Poll(ctx context.Context) (next time.Time, err error) {
	if err := m.executes(); err != nil {
		return next, err
	}
	m.mu.Lock()
	if m.closing {
		m.mu.Unlock()
		return next, fmt.Errorf("mailbox: poll: %w", ErrShutdown)
	}
	m.polls = true
	m.work.Add(1)
	m.mu.Unlock()
	defer m.work.Done()
	return m.round(ctx)
}

// round polls once for all that is due and returns when to poll again.
func (m *Mailbox) round(ctx context.Context) (time.Time, error) {
	free, skip := m.room()
	if free == 0 {
		return time.Time{}, nil // a worker that becomes free wakes the loop
	}
	if err := m.check(ctx); err != nil {
		return time.Time{}, err
	}
	paused, all, err := m.paused(ctx)
	if err != nil || all {
		return time.Time{}, err
	}
	skip = append(skip, paused...)
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
	now, err := m.readTime(ctx)
	if err != nil {
		return time.Time{}, err
	}
	limit := free + m.asideCount(now)
	due, next, err := m.due(ctx, dueQuery{By: now, Skip: append(skip, full...), Limit: limit})
	if err != nil {
		return time.Time{}, err
	}
	m.available(ctx)
	moved, later, err := m.each(ctx, due, free)
	if errors.Is(err, errCrowded) {
		return m.now().Add(jitter(m.cfg.Poll)), nil
	}
	if err != nil {
		return time.Time{}, err
	}
	if len(due) == limit {
		m.starve()
		if moved {
			m.wake()
		}
	}
	return earliest(next, later), nil
}

// claimers is how many threads a process polls at once: a claim is a round trip to the store, and workers wait for it.
const claimers = 16

// each polls threads that are due, most of them at most. One that fails is set aside, and the others have their turn. It
// reports whether another poll would find others, and when the first one that was set aside is to be polled again.
func (m *Mailbox) each(ctx context.Context, due []Thread, most int) (moved bool, later time.Time, err error) {
	var mu sync.Mutex
	var working sync.WaitGroup
	free := make(chan struct{}, claimers)
	failed := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return err != nil
	}
	note := func(did bool, again time.Time, failure error) {
		mu.Lock()
		defer mu.Unlock()
		moved, later, err = moved || did, earliest(later, again), cmp.Or(err, failure)
	}
	for i := range due {
		if until := m.asideUntil(due[i].ID); !until.IsZero() {
			note(false, until, nil)
			continue
		}
		if most == 0 {
			break
		}
		if m.pauses.has(due[i].Tenant) { // since the round began
			continue
		}
		most--
		free <- struct{}{}
		if failed() {
			break
		}
		working.Go(func() {
			defer func() { <-free }()
			note(m.pollOrAside(ctx, due[i]))
		})
	}
	working.Wait()
	return moved, later, err
}

// pollOrAside polls a thread, and sets it aside when that fails. An error is one that concerns all threads.
func (m *Mailbox) pollOrAside(ctx context.Context, h Thread) (moved bool, again time.Time, err error) {
	did, err := m.poll(ctx, h)
	switch {
	case err == nil:
		m.mu.Lock()
		delete(m.asides, h.ID)
		m.mu.Unlock()
		return did, time.Time{}, nil
	case errors.Is(err, errCrowded), ctx.Err() != nil, m.Health() != nil, m.fails(ctx) != nil:
		return false, time.Time{}, err
	}
	if again = m.setAside(ctx, h.ID, err); again.IsZero() {
		return false, time.Time{}, err
	}
	return true, again, nil
}

// starve notes that a worker that becomes free finds more to do.
func (m *Mailbox) starve() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hungry = true
}

// room is how many workers are free, and which tenants have none.
func (m *Mailbox) room() (free int, skip []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cfg.Limits.TenantWorkers > 0 {
		for tenant, n := range m.tenants {
			if n >= m.cfg.Limits.TenantWorkers {
				skip = append(skip, tenant)
			}
		}
	}
	free = max(m.cfg.Limits.Workers-m.claims, 0)
	m.hungry = m.hungry || free == 0 || len(skip) > 0
	return free, skip
}

// checkClock warns of a local clock that differs from the store's by more than [Lease] allows, once for each time that it was set.
// It returns the difference of which it has warned.
func (m *Mailbox) checkClock(ctx context.Context, warned time.Duration) time.Duration {
	ahead := m.ahead()
	bound := m.skew
	if ahead.Abs() <= bound || (ahead-warned).Abs() <= bound {
		return warned
	}
	m.cfg.Logger.WarnContext(ctx, "mailbox_clock_differs", "ahead", ahead, "bound", bound,
		"hint", "the clock of this machine is not that of the store, by which leases go; synchronize it (NTP)")
	return ahead
}
