package background

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/mortise-dev/mortise/abi"
)

// Manager runs tasks.
type Manager struct {
	cfg   Config
	slots chan struct{} // one per running body
	stop  chan struct{} // closed by Close
	once  sync.Once
	wg    sync.WaitGroup // one per task that has not ended

	// gates hold back what is seen of a thread's tasks while one of them ends. A
	// thread has one gate, a gate many threads. Locked before mu, never after.
	gates [64]gate
	seed  maphash.Seed

	mu        sync.Mutex
	tasks     map[string]*Task
	names     map[name]string // names of live tasks, to ids
	live      map[string]int  // tasks that have not ended, by thread
	ended     []string        // ended tasks, oldest first
	changed   chan struct{}   // closed and replaced when a task ends
	closed    bool
	seq       uint64
	abandoned int
}

type name struct{ thread, name string }

// New makes a Manager with no tasks.
func New(cfg Config) (*Manager, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m := &Manager{
		cfg: cfg, seed: maphash.MakeSeed(),
		slots: make(chan struct{}, cfg.MaxRunning), stop: make(chan struct{}),
		tasks: map[string]*Task{}, names: map[name]string{}, live: map[string]int{},
		changed: make(chan struct{}),
	}
	for i := range m.gates {
		m.gates[i] = newGate()
	}
	return m, nil
}

// Spawn starts a task and returns its id at once. When MaxRunning bodies run the
// task waits for its turn. The body keeps the values of ctx, but neither its
// deadline nor its cancellation.
func (m *Manager) Spawn(ctx context.Context, spec Spec) (string, error) {
	spec.Class = cmp.Or(spec.Class, Blocking)
	spec.Timeout = cmp.Or(spec.Timeout, m.cfg.Timeout)
	if err := spec.validate(); err != nil {
		return "", err
	}
	t := &Task{m: m, spec: spec, emit: newGate()}
	ctx = context.WithoutCancel(ctx)
	t.life, t.end = context.WithCancel(ctx)
	ctx, t.cancel = context.WithCancelCause(ctx)
	if err := m.register(t); err != nil {
		t.cancel(nil)
		t.end()
		return "", err
	}
	go m.run(ctx, t)
	return t.info.ID, nil
}

// register checks and enters a task in one step.
func (m *Manager) register(t *Task) error {
	now := m.cfg.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	key := name{t.spec.Thread, t.spec.Name}
	switch {
	case m.closed:
		return ErrClosed
	case len(m.tasks)-len(m.ended) >= m.cfg.MaxRunning+m.cfg.MaxQueued:
		return ErrQueueFull
	case t.spec.Name != "" && m.names[key] != "":
		return fmt.Errorf("background: a running task named '%s' already exists", t.spec.Name)
	}
	id := m.cfg.NewID()
	if id == "" || m.tasks[id] != nil {
		return fmt.Errorf("background: Config.NewID gave %q, which is empty or taken", id)
	}
	m.seq++
	t.seq = m.seq
	t.info = Info{
		ID: id, Thread: t.spec.Thread, Type: t.spec.Type, Name: t.spec.Name,
		Description: t.spec.Description, Class: t.spec.Class, Status: Queued, CreatedAt: now,
	}
	m.tasks[id] = t
	m.live[t.spec.Thread]++
	if t.spec.Name != "" {
		m.names[key] = id
	}
	m.wg.Add(1)
	// A free place is taken here, so that a task that can run is never seen as
	// queued.
	select {
	case m.slots <- struct{}{}:
		t.info.Status = Running
	default:
	}
	return nil
}

// Housekeep spawns a housekeeping task. Its types are builtin, so that a package
// that must not know this one can take it as a function.
func (m *Manager) Housekeep(
	ctx context.Context, thread, taskType, description string,
	body func(ctx context.Context, emit func(eventType string, payload any) bool) error,
) (string, error) {
	if body == nil {
		return "", fmt.Errorf("background: housekeeping task %q has no body", taskType)
	}
	return m.Spawn(ctx, Spec{
		Thread: thread, Type: taskType, Description: description, Class: Housekeeping,
		Body: func(ctx context.Context, t *Task) (any, error) { return nil, body(ctx, t.Emit) },
	})
}

// Cancel asks a task to end and reports whether there was one to ask. It does
// not wait.
func (m *Manager) Cancel(id string) bool {
	m.mu.Lock()
	t := m.tasks[id]
	ok := t != nil && !t.info.Status.Terminal()
	m.mu.Unlock()
	if ok {
		t.cancel(errCancelled)
	}
	return ok
}

// CancelAll asks every task of a thread to end and returns how many there were.
func (m *Manager) CancelAll(thread string) int {
	return m.cancelWhere(func(t *Task) bool { return t.spec.Thread == thread })
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

// Get returns what is known of a task, ended ones included while they are kept.
func (m *Manager) Get(id string) (Info, bool) {
	m.mu.Lock()
	t := m.tasks[id]
	m.mu.Unlock()
	if t == nil {
		return Info{}, false
	}
	defer m.look(t.spec.Thread)()
	return t.info, true
}

// List returns the tasks of a thread, oldest first.
func (m *Manager) List(thread string) []Info {
	defer m.look(thread)()
	var own []*Task
	for _, t := range m.tasks {
		if t.spec.Thread == thread {
			own = append(own, t)
		}
	}
	slices.SortFunc(own, func(a, b *Task) int { return cmp.Compare(a.seq, b.seq) })
	out := make([]Info, len(own))
	for i, t := range own {
		out[i] = t.info
	}
	return out
}

// HasBlocking reports whether a blocking task of the thread has not ended. When
// it returns false, the notices of all blocking tasks have been delivered.
func (m *Manager) HasBlocking(thread string) bool {
	defer m.look(thread)()
	if m.live[thread] == 0 {
		return false
	}
	for _, t := range m.tasks {
		if t.spec.Thread == thread && t.spec.Class == Blocking && !t.info.Status.Terminal() {
			return true
		}
	}
	return false
}

// Wait returns when no task of the thread runs or waits to run, whatever its
// class, or when ctx is done.
func (m *Manager) Wait(ctx context.Context, thread string) error {
	for {
		unlock := m.look(thread)
		n, changed := m.live[thread], m.changed
		unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("background: wait for %d tasks of thread %s: %w", n, thread, context.Cause(ctx))
		}
	}
}

// Close refuses new tasks, cancels all, and waits until each has ended, which
// takes at most the grace period, or until ctx is done. It reports bodies that
// had to be abandoned. Closing again waits again.
func (m *Manager) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.once.Do(func() { close(m.stop) })
	m.cancelWhere(func(*Task) bool { return true })
	done := make(chan struct{})
	go func() {
		m.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("background: close: %w", context.Cause(ctx))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.abandoned > 0 {
		return fmt.Errorf("background: close: %d task bodies ignored cancellation and were abandoned", m.abandoned)
	}
	return nil
}

// look locks what is to be seen of a thread and returns the unlock.
func (m *Manager) look(thread string) func() {
	g := m.gate(thread)
	g.lock()
	m.mu.Lock()
	return func() {
		m.mu.Unlock()
		g.unlock()
	}
}

func (m *Manager) gate(thread string) gate {
	return m.gates[maphash.String(m.seed, thread)%uint64(len(m.gates))]
}

// terminal builds the one notice that ends a task.
func terminal(t *Task, o outcome) abi.Notice {
	n := abi.Notice{TaskID: t.info.ID, Housekeeping: t.spec.Class == Housekeeping}
	switch o.status {
	case Completed:
		n.Kind, n.Result = abi.NoticeCompleted, o.result
	case Cancelled:
		n.Kind = abi.NoticeCancelled
	default:
		n.Kind, n.Error = abi.NoticeFailed, o.err
	}
	return n
}
