package background

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"golang.org/x/time/rate"

	"github.com/mortise-dev/mortise/inbox"
)

// Manager runs tasks.
type Manager struct {
	cfg  Config
	once sync.Once
	wg   sync.WaitGroup // one per task that has not ended
	// late ends when Close gives up on the ledger.
	late   context.Context //nolint:containedctx // ends attempts when the Manager closes
	expire context.CancelFunc

	mu      sync.Mutex
	places  places
	tasks   map[string]*Task
	threads map[string]*thread // that have tasks that have not ended
	ended   []*Task            // those that are kept, oldest first
	changed chan struct{}      // closed and replaced when a task ends
	closed  bool
	seq     uint64
	stats   Stats
}

// New makes a Manager with no tasks.
func New(cfg Config) (*Manager, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m := &Manager{
		cfg:    cfg,
		places: newPlaces(cfg.MaxRunning, cfg.MaxPerThread),
		tasks:  map[string]*Task{}, threads: map[string]*thread{},
		changed: make(chan struct{}),
	}
	m.late, m.expire = context.WithCancel(context.Background()) //nolint:forbidigo // Close ends it
	return m, nil
}

// Spawn starts a task and returns its id at once. When too many bodies run, of
// the thread or in all, the task waits for its turn. The body keeps the values of
// ctx, but neither its deadline nor its cancellation. With a Ledger, the task is
// kept before it starts; when that fails nothing was started.
func (m *Manager) Spawn(ctx context.Context, spec Spec) (string, error) {
	return m.spawn(ctx, spec, nil)
}

func (m *Manager) spawn(ctx context.Context, spec Spec, box *inbox.Box) (string, error) {
	spec.Class = cmp.Or(spec.Class, Blocking)
	if err := spec.validate(); err != nil {
		return "", err
	}
	spec.Parent = spec.Parent.or(LineageOf(ctx))
	t := m.newTask(ctx, spec, box)
	if err := m.register(t); err != nil {
		t.drop()
		return "", err
	}
	if err := m.launch(ctx, t); err != nil {
		return "", err
	}
	return t.info.ID, nil
}

// newTask makes a task that is not registered yet.
func (m *Manager) newTask(ctx context.Context, spec Spec, box *inbox.Box) *Task {
	timeout := m.cfg.Timeout
	if spec.Class == Service {
		timeout = m.cfg.ServiceTimeout
	}
	spec.Timeout = cmp.Or(spec.Timeout, timeout)
	t := &Task{m: m, spec: spec, box: box, emit: make(chan struct{}, 1), turn: make(chan struct{})}
	t.rate = rate.NewLimiter(rate.Limit(m.cfg.EventsPerSecond), m.cfg.EventsPerSecond)
	t.life, t.end = context.WithCancel(context.WithoutCancel(ctx))
	return t
}

// drop releases a task that was never started.
func (t *Task) drop() {
	t.end()
	if t.box != nil {
		t.box.Close()
	}
}

// launch keeps the task, then lets it run when it is its turn.
func (m *Manager) launch(ctx context.Context, t *Task) error {
	if err := m.keep(ctx, t); err != nil {
		m.mu.Lock()
		m.unregister(t)
		m.mu.Unlock()
		t.drop()
		m.wg.Done()
		return fmt.Errorf("background: task %s: keep its record: %w", t.info.ID, err)
	}
	m.mu.Lock()
	m.places.enter(t)
	m.mu.Unlock()
	go m.run(t) //nolint:contextcheck // the body outlives the spawn; it has a context made of this one
	return nil
}

// keep writes the record of a task that begins.
func (m *Manager) keep(ctx context.Context, t *Task) error {
	m.mu.Lock()
	info := t.info
	m.mu.Unlock()
	info.Status = Running // or about to; it has not ended, which is what matters after a crash
	record, err := info.record()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.life, func() { cancel(ErrClosed) })() //nolint:contextcheck // that of the task ends when the Manager is closed
	if t.was == nil {
		return m.put(ctx, t, record, nil)
	}
	claimed, err := m.cfg.Ledger.Claim(ctx, t.spec.Thread, info.ID, t.was, record)
	if err == nil && !claimed {
		err = errClaimed
	}
	return err
}

// register checks and enters a task in one step.
func (m *Manager) register(t *Task) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return ErrClosed
	case len(m.tasks)-len(m.ended) >= m.cfg.MaxRunning+m.cfg.MaxQueued:
		return ErrQueueFull
	case t.spec.Name != "" && m.named(t.spec.Thread, t.spec.Name) != "":
		return fmt.Errorf("background: a running task named '%s' already exists", t.spec.Name)
	}
	id := t.spec.ID
	if id == "" {
		if id, err = m.freshID(); err != nil {
			return err
		}
	}
	if m.tasks[id] != nil {
		return fmt.Errorf("background: Spec.ID %s is taken", id)
	}
	t.info = Info{
		ID: id, Thread: t.spec.Thread, Type: t.spec.Type, Name: t.spec.Name, Description: t.spec.Description,
		Class: t.spec.Class, Status: Queued, CreatedAt: m.cfg.Now(), Parent: t.spec.Parent, Attempt: 1, Owner: m.cfg.Ledger.Owner(),
	}
	m.enter(t)
	return nil
}

// named returns the live task of a thread that has a name, if there is one. The caller holds the lock.
func (m *Manager) named(thread, name string) string {
	for id, t := range m.tasks {
		if t.spec.Thread == thread && t.spec.Name == name && !t.info.Status.Terminal() {
			return id
		}
	}
	return ""
}

// freshID takes an id that no task has. A generator that counts from nought goes
// past the ids that were restored. The caller holds the lock.
func (m *Manager) freshID() (string, error) {
	id := ""
	for range len(m.tasks) + 1 {
		if id = m.cfg.NewID(); id != "" && m.tasks[id] == nil {
			return id, nil
		}
	}
	return "", fmt.Errorf("background: Config.NewID gave %.80q, which is empty or taken", id)
}

// enter makes a task known. The caller holds the lock.
func (m *Manager) enter(t *Task) {
	own := t.spec.Parent
	own.TaskID = t.info.ID
	// Not of t.life: that ends before the end is committed.
	t.body, t.cancel = context.WithCancelCause(WithLineage(context.WithoutCancel(t.life), own))
	m.seq++
	t.seq = m.seq
	m.tasks[t.info.ID] = t
	th := m.threads[t.spec.Thread]
	if th == nil {
		th = &thread{gate: make(chan struct{}, 1)}
		m.threads[t.spec.Thread] = th
	}
	th.live++
	m.wg.Add(1)
}

// leave takes a task from those that live. The caller holds the lock.
func (m *Manager) leave(t *Task) {
	th := m.threads[t.spec.Thread]
	th.live--
	if th.live == 0 {
		delete(m.threads, t.spec.Thread)
	}
	close(m.changed)
	m.changed = make(chan struct{})
}

// unregister undoes register. The caller holds the lock.
func (m *Manager) unregister(t *Task) {
	m.leave(t)
	delete(m.tasks, t.info.ID)
	t.cancel(nil)
}

// Housekeep spawns a housekeeping task. Its parameters have builtin types, so that a package
// that must not import this one can take it as a function.
func (m *Manager) Housekeep(ctx context.Context, thread, id, taskType, description string, body func(ctx context.Context) error) error {
	if body == nil {
		return fmt.Errorf("background: housekeeping task %q has no body", taskType)
	}
	_, err := m.Spawn(ctx, Spec{
		ID: id, Thread: thread, Type: taskType, Description: description, Class: Housekeeping,
		Body: func(ctx context.Context, _ *Task) (any, error) { return nil, body(ctx) },
	})
	return err
}

// thread has the tasks of a thread that have not ended. Manager.mu guards it, but for the gate.
type thread struct {
	live int
	// gate is held while an end is committed and made visible, and while the status of the thread's tasks is read: so the owner never has
	// a notification whose end is not visible, nor the other way round. It is a channel, which serves those that wait in order.
	gate chan struct{}
}

// lock acquires the gate of a thread and returns how to release it. A thread without live tasks needs none.
func (m *Manager) lock(id string) (unlock func()) {
	current := func() *thread {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.threads[id]
	}
	for th := current(); th != nil; th = current() {
		th.gate <- struct{}{}
		if current() == th {
			return func() { <-th.gate }
		}
		<-th.gate // its last task ended meanwhile
	}
	return func() {}
}

// read locks the status of a thread and returns the unlock.
func (m *Manager) read(id string) func() {
	unlock := m.lock(id)
	m.mu.Lock()
	return func() {
		m.mu.Unlock()
		unlock()
	}
}

// observe notifies the observer, whose code may panic.
func (m *Manager) observe(ctx context.Context, kind EventKind, info Info) {
	if m.cfg.Observe == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			m.cfg.Logger.ErrorContext(ctx, "observer panicked", "task_id", info.ID, "task_type", info.Type)
		}
	}()
	m.cfg.Observe(Event{Kind: kind, Task: info})
}
