package background

import "time"

// thread is what the Manager knows of a thread while it has tasks that have not ended. Manager.mu guards it, but for the gate and the
// patience.
type thread struct {
	live, blocking int // tasks that have not ended, and those of them that are blocking
	// gate is held while an end is handed on and made visible, and while the status of the thread's tasks is read: so the owner never has
	// a notification whose end is not visible, nor the other way round. It is a channel, which serves those that wait in order.
	gate chan struct{}
	// patience is how long the next attempt to hand on an end may take. Who holds the gate owns it.
	patience time.Duration
}

func newThread() *thread { return &thread{gate: make(chan struct{}, 1), patience: patience} }

// lock acquires the gate of a thread and returns how to release it. The thread is nil if it has no tasks.
func (m *Manager) lock(id string) (th *thread, unlock func()) {
	for {
		m.mu.Lock()
		th := m.threads[id]
		m.mu.Unlock()
		if th == nil {
			return nil, func() {}
		}
		th.gate <- struct{}{}
		m.mu.Lock()
		current := m.threads[id] == th
		m.mu.Unlock()
		if current {
			return th, func() { <-th.gate }
		}
		<-th.gate // its last task ended meanwhile
	}
}

// read locks the status of a thread and returns the unlock.
func (m *Manager) read(id string) func() {
	_, unlock := m.lock(id)
	m.mu.Lock()
	return func() {
		m.mu.Unlock()
		unlock()
	}
}

// counts returns how many tasks of a thread have not ended, and how many of them are blocking. The caller holds the lock.
func (m *Manager) counts(id string) (live, blocking int) {
	if th := m.threads[id]; th != nil {
		return th.live, th.blocking
	}
	return 0, 0
}
