package background

// Cancel asks a task to end and reports whether there was one to ask. It does
// not wait.
func (m *Manager) Cancel(id string) bool {
	return m.cancelWhere(func(t *Task) bool { return t.info.ID == id }) > 0
}

// CancelTree asks a task and all that come from it, at any depth, to end. It
// returns how many there were to ask; 0 if the task is not known.
func (m *Manager) CancelTree(id string) int {
	m.mu.Lock()
	in := m.tree(id)
	m.mu.Unlock()
	return m.cancelWhere(func(t *Task) bool { return in[t.info.ID] })
}

// CancelAll asks every task of a thread to end and returns how many there were.
// Notifications that are not read yet stay.
func (m *Manager) CancelAll(thread string) int {
	return m.cancelWhere(func(t *Task) bool { return t.spec.Thread == thread })
}

// CancelRun asks what was spawned by a run, and all that comes from that, to end.
// It is for a run that was cancelled itself. Services and housekeeping continue.
func (m *Manager) CancelRun(runID string) int {
	if runID == "" {
		return 0
	}
	in := map[string]bool{}
	m.mu.Lock()
	for id, t := range m.tasks {
		root := t.spec.Parent.RunID == runID && t.spec.Parent.TaskID == ""
		if root && !t.info.Status.Terminal() && t.spec.Class.group() == Blocking {
			for child := range m.tree(id) {
				in[child] = true
			}
		}
	}
	m.mu.Unlock()
	return m.cancelWhere(func(t *Task) bool { return in[t.info.ID] })
}

// tree returns a task's id and those of all that come from it. Lineages that
// form a ring, as a restored one may, end it. The caller holds the lock.
func (m *Manager) tree(id string) map[string]bool {
	if m.tasks[id] == nil {
		return nil
	}
	children := map[string][]string{}
	for child, t := range m.tasks {
		if p := t.spec.Parent.TaskID; p != "" {
			children[p] = append(children[p], child)
		}
	}
	in := map[string]bool{id: true}
	for next := []string{id}; len(next) > 0; {
		id, next = next[0], next[1:]
		for _, child := range children[id] {
			if !in[child] {
				in[child] = true
				next = append(next, child)
			}
		}
	}
	return in
}

func (m *Manager) cancelWhere(match func(*Task) bool) int {
	var hit []*Task
	m.mu.Lock()
	for _, t := range m.tasks {
		if !t.info.Status.Terminal() && match(t) {
			hit = append(hit, t)
		}
	}
	m.mu.Unlock()
	for _, t := range hit {
		t.cancel(errCancelled)
	}
	return len(hit)
}
