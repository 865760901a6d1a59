package background

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mortise-dev/mortise/inbox"
)

// Manager runs tasks.
type Manager struct {
	cfg Config
	closing

	mu     sync.Mutex
	places places
	tasks  map[string]*Task
	gates  map[string]*gate // of threads that have tasks that have not ended
	ended  []*Task          // those that are kept, oldest first
	closed bool
	seq    uint64
	stats  Stats
}

// closing is what Close needs.
type closing struct {
	once sync.Once
	wg   sync.WaitGroup // one per task that has not ended
	// late ends when Close gives up on the ledger.
	late   context.Context //nolint:containedctx // ends attempts when the Manager closes
	expire context.CancelFunc
}

// New makes a Manager with no tasks.
func New(cfg Config) (*Manager, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m := &Manager{
		cfg: cfg, places: newPlaces(cfg.MaxRunning, cfg.MaxPerThread),
		tasks: map[string]*Task{}, gates: map[string]*gate{},
	}
	m.late, m.expire = context.WithCancel(context.Background()) //nolint:forbidigo // Close ends it
	return m, nil
}

// Spec describes a task to spawn.
type Spec struct {
	// ID of the task, unique across processes, at most 128 bytes. Empty means one of Config.NewID.
	ID string
	// Thread owns the task and gets its notifications. Required.
	Thread string
	// Type is a word for reports, "context_compaction" for example. Required, at
	// most 64 bytes.
	Type string
	// Name addresses the task within its thread while it runs. Optional, at most
	// 128 bytes.
	Name string
	// Description is for people and models, at most 4 KiB.
	Description string
	// Class is [Blocking] when empty.
	Class Class
	// Parent is where the task comes from. Its empty fields come from the
	// context of the spawn.
	Parent Lineage
	// Timeout of the body, from its start. Zero means that of the [Config].
	Timeout time.Duration
	// Body is the work. Required.
	Body Body
}

// Spawn starts a task and returns its id at once. When too many bodies run, of
// the thread or in all, the task waits for its turn. The body keeps the values of
// ctx, but neither its deadline nor its cancellation. The record of the task is
// kept before it starts; when that fails nothing was started.
func (m *Manager) Spawn(ctx context.Context, spec Spec) (string, error) {
	return m.spawn(ctx, spec, nil)
}

func (m *Manager) spawn(ctx context.Context, spec Spec, box *inbox.Box) (string, error) {
	t := &Task{m: m, job: job{work: spec.Body, timeout: spec.Timeout, box: box}, info: Info{
		ID: spec.ID, Thread: spec.Thread, Type: spec.Type, Name: spec.Name, Description: spec.Description,
		Class: cmp.Or(spec.Class, Blocking), Status: Queued, CreatedAt: m.cfg.Now(),
		Parent: spec.Parent.or(LineageOf(ctx)), Attempt: 1, Owner: m.cfg.Ledger.Owner(),
	}}
	err := t.info.validate()
	switch {
	case err != nil:
	case spec.Body == nil:
		err = errors.New("background: Spec.Body is missing")
	case spec.Timeout < 0:
		err = errors.New("background: Spec.Timeout is negative")
	default:
		err = m.register(ctx, t, false)
	}
	if err == nil {
		err = m.launch(ctx, t)
	}
	if err != nil {
		return "", err
	}
	return t.info.ID, nil
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

// errTaken reports an id that a task has.
var errTaken = errors.New("is taken")

// register checks and enters a task in one step. One that another process had is never refused for want of room.
func (m *Manager) register(ctx context.Context, t *Task, recovered bool) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := &t.info
	switch {
	case m.closed:
		return ErrClosed
	case recovered:
	case len(m.tasks)-len(m.ended) >= m.cfg.MaxRunning+m.cfg.MaxQueued:
		return ErrQueueFull
	case i.Name != "" && m.named(i.Thread, i.Name) != "":
		return fmt.Errorf("background: a running task named '%s' already exists", i.Name)
	case i.ID == "":
		if i.ID, err = m.freshID(); err != nil {
			return err
		}
	}
	if m.tasks[i.ID] != nil {
		return fmt.Errorf("background: Spec.ID %s %w", i.ID, errTaken)
	}
	m.seq++
	t.seq = m.seq
	m.tasks[i.ID] = t
	t.done = make(chan struct{})
	if i.Status.Terminal() {
		close(t.done)
		m.ended = append(m.ended, t)
		return nil
	}
	m.begin(ctx, t)
	return nil
}

// begin makes what a task needs that has not ended. The caller holds the lock.
func (m *Manager) begin(ctx context.Context, t *Task) {
	if t.info.Class == Service {
		t.timeout = cmp.Or(t.timeout, m.cfg.ServiceTimeout)
	}
	t.timeout = cmp.Or(t.timeout, m.cfg.Timeout)
	t.rate = rate.NewLimiter(rate.Limit(m.cfg.EventsPerSecond), m.cfg.EventsPerSecond)
	t.emit, t.turn = make(chan struct{}, 1), make(chan struct{})
	own := t.info.Parent
	own.TaskID = t.info.ID
	t.life, t.end = context.WithCancel(context.WithoutCancel(ctx))
	// Not of t.life: that ends before the end is committed.
	t.body, t.cancel = context.WithCancelCause(WithLineage(context.WithoutCancel(ctx), own))
	t.gate = m.gates[t.info.Thread]
	if t.gate == nil {
		t.gate = &gate{lock: make(chan struct{}, 1)}
		m.gates[t.info.Thread] = t.gate
	}
	t.gate.live++
	m.wg.Add(1)
}

// leave takes a task from those that live. The caller holds the lock.
func (m *Manager) leave(t *Task) {
	t.gate.live--
	if t.gate.live == 0 {
		delete(m.gates, t.info.Thread)
	}
	close(t.done)
}

// launch keeps the record of a task, then lets it run when it is its turn.
func (m *Manager) launch(ctx context.Context, t *Task) error {
	if err := m.keep(ctx, t); err != nil {
		m.mu.Lock()
		m.leave(t)
		delete(m.tasks, t.info.ID)
		m.mu.Unlock()
		t.end()
		t.cancel(nil)
		if t.box != nil {
			t.box.Close()
		}
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
	info := m.info(t)
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
	return guard("Ledger", func() error {
		claimed, err := m.cfg.Ledger.Claim(ctx, info.Thread, info.ID, t.was, record)
		if err == nil && !claimed {
			err = errClaimed
		}
		return err
	})
}

// info returns what is known of a task.
func (m *Manager) info(t *Task) Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	return t.info
}

// find returns the tasks that match, oldest first. The caller holds the lock.
func (m *Manager) find(match func(*Info) bool) (found []*Task) {
	for _, t := range m.tasks {
		if match(&t.info) {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b *Task) int { return cmp.Compare(a.seq, b.seq) })
	return found
}

// named returns the live task of a thread that has a name, if there is one. The caller holds the lock.
func (m *Manager) named(thread, name string) (id string) {
	for _, t := range m.find(func(i *Info) bool { return i.Thread == thread && i.Name == name && !i.Status.Terminal() }) {
		id = t.info.ID
	}
	return id
}

// freshID takes an id that no task has. A generator that counts from nought goes
// past the ids that were restored. The caller holds the lock.
func (m *Manager) freshID() (string, error) {
	id := ""
	for range len(m.tasks) + 1 {
		if id = m.cfg.NewID(); id != "" && len(id) <= maxName && m.tasks[id] == nil {
			return id, nil
		}
	}
	return "", fmt.Errorf("background: Config.NewID gave %.80q, which is empty, taken or longer than %d bytes", id, maxName)
}

// gate is held while an end of a task of its thread is committed and made visible, and while the status of the thread's tasks is read: so
// the owner never has a notification whose end is not visible, nor the other way round.
type gate struct {
	live int           // tasks that have not ended, guarded by Manager.mu
	lock chan struct{} // a channel serves those that wait in order
}

// read locks the status of a thread and returns the unlock. A thread without live tasks needs no gate.
func (m *Manager) read(thread string) (unlock func()) {
	m.mu.Lock()
	g := m.gates[thread]
	if g == nil {
		return m.mu.Unlock
	}
	m.mu.Unlock()
	g.lock <- struct{}{}
	m.mu.Lock()
	return func() {
		m.mu.Unlock()
		<-g.lock
	}
}
