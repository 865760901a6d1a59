package background

import (
	"context"
	"time"
)

// thread is what the Manager knows of a thread while it has tasks that have not
// ended. Manager.mu guards it.
//
// While the end of one of its tasks is being committed, the status of the thread is undecided: the owner may
// have the notification already, and the status comes next. So readers wait until no such attempt is under way,
// and no attempt begins before all readers that waited are done. An attempt may itself wait, for room or for a
// disk. It yields to readers: it is cancelled, and repeated after them. Before that it has some patience, in which
// to finish what is not a wait for room.
type thread struct {
	live, blocking int // tasks that have not ended, and those of them that are blocking
	attempts       []*attempt
	readers        int           // that wait until there are no attempts, or have just done so
	quiet          chan struct{} // closed when there are none
	read           chan struct{} // closed when the last reader is done
}

// attempt is an attempt to commit an end.
type attempt struct {
	cancel   context.CancelFunc
	since    time.Time
	patience time.Duration
	timer    *time.Timer // cancels it when its patience is over; set once a reader waits
	at       int         // in the attempts of its thread
}

// hurry cancels the attempt when its patience is over.
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

// read locks the status of a thread and returns the unlock.
func (m *Manager) read(id string) func() {
	m.mu.Lock()
	th := m.threads[id]
	if th == nil || len(th.attempts) == 0 {
		return m.mu.Unlock
	}
	if th.readers == 0 {
		th.quiet, th.read = make(chan struct{}), make(chan struct{})
	}
	th.readers++
	for _, a := range th.attempts {
		a.hurry()
	}
	quiet := th.quiet
	m.mu.Unlock()
	<-quiet
	m.mu.Lock()
	return func() {
		th.readers--
		if th.readers == 0 {
			close(th.read)
		}
		m.tidy(id, th)
		m.mu.Unlock()
	}
}

// begin waits until there are no readers and begins an attempt. The caller holds the lock,
// which is free meanwhile; the task has not ended, so its thread is there.
func (m *Manager) begin(id string, patience time.Duration, cancel context.CancelFunc) *attempt {
	th := m.threads[id]
	for th.readers > 0 {
		read := th.read
		m.mu.Unlock()
		<-read
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
	if last == 0 && th.readers > 0 {
		close(th.quiet)
	}
	m.tidy(id, th)
}

// tidy forgets a thread that has no tasks and that has no readers. The caller holds
// the lock.
func (m *Manager) tidy(id string, th *thread) {
	if th.live == 0 && th.readers == 0 && len(th.attempts) == 0 {
		delete(m.threads, id)
	}
}
