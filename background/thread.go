package background

import (
	"context"
	"time"
)

// thread is what the Manager knows of a thread while it has tasks that have not
// ended. Manager.mu guards it.
//
// While an end of one of its tasks is being handed on, nobody can say what is to be
// seen of the thread: the owner may have the notice already, and the status comes
// next. So who looks waits until no such attempt is under way, and no attempt begins
// before all that waited have looked. An attempt may itself wait, for room or for a
// disk. It gives way to who looks: it is cut short, and made again when they have
// looked. It is granted some patience before, in which to finish what is no wait for
// room.
type thread struct {
	live, blocking int // tasks that have not ended, and those of them that are blocking
	attempts       []*attempt
	lookers        int           // who wait until there are no attempts, or have just done so
	quiet          chan struct{} // closed when there are none
	looked         chan struct{} // closed when the last looker has looked
}

// attempt is one that hands on an end.
type attempt struct {
	cancel   context.CancelFunc
	since    time.Time
	patience time.Duration
	timer    *time.Timer // cuts it when its patience is over; set once somebody waits
	at       int         // in the attempts of its thread
}

// hurry cuts the attempt short as soon as it has had its patience.
func (a *attempt) hurry() {
	if left := a.patience - time.Since(a.since); left <= 0 {
		a.cancel()
	} else if a.timer == nil {
		a.timer = time.AfterFunc(left, a.cancel)
	}
}

// thread returns what is known of a thread, nothing if it has no tasks. The caller
// holds the lock.
func (m *Manager) thread(id string) thread {
	if th := m.threads[id]; th != nil {
		return *th
	}
	return thread{}
}

// look locks what is to be seen of a thread and returns the unlock.
func (m *Manager) look(id string) func() {
	m.mu.Lock()
	th := m.threads[id]
	if th == nil || len(th.attempts) == 0 {
		return m.mu.Unlock
	}
	if th.lookers == 0 {
		th.quiet, th.looked = make(chan struct{}), make(chan struct{})
	}
	th.lookers++
	for _, a := range th.attempts {
		a.hurry()
	}
	quiet := th.quiet
	m.mu.Unlock()
	<-quiet
	m.mu.Lock()
	return func() {
		th.lookers--
		if th.lookers == 0 {
			close(th.looked)
		}
		m.tidy(id, th)
		m.mu.Unlock()
	}
}

// begin waits until nobody looks and begins an attempt. The caller holds the lock,
// which is free meanwhile; the task has not ended, so its thread is there.
func (m *Manager) begin(id string, patience time.Duration, cancel context.CancelFunc) *attempt {
	th := m.threads[id]
	for th.lookers > 0 {
		looked := th.looked
		m.mu.Unlock()
		<-looked
		m.mu.Lock()
	}
	a := &attempt{cancel: cancel, since: time.Now(), patience: patience, at: len(th.attempts)}
	th.attempts = append(th.attempts, a)
	return a
}

// over takes an attempt from those under way. The caller holds the lock, and has held
// it since it made the end visible, if it did.
func (m *Manager) over(id string, a *attempt) {
	th := m.threads[id]
	last := len(th.attempts) - 1
	th.attempts[a.at] = th.attempts[last]
	th.attempts[a.at].at = a.at
	th.attempts[last] = nil
	th.attempts = th.attempts[:last]
	if a.timer != nil {
		a.timer.Stop()
	}
	if last == 0 && th.lookers > 0 {
		close(th.quiet)
	}
	m.tidy(id, th)
}

// tidy forgets a thread that has no tasks and that nobody looks at. The caller holds
// the lock.
func (m *Manager) tidy(id string, th *thread) {
	if th.live == 0 && th.lookers == 0 && len(th.attempts) == 0 {
		delete(m.threads, id)
	}
}
