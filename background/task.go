package background

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/time/rate"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
)

// Body is the work of a task. Its result, and what it emits, become values of
// the ABI (see the package comment of abi) by way of JSON. Work that the body
// starts should get ctx, or a context made of it: it carries the cancellation and the lineage.
type Body func(ctx context.Context, t *Task) (any, error)

// Task is a running task as its body sees it. It is safe for concurrent use.
type Task struct {
	m    *Manager
	info Info // guarded by Manager.mu, but for what never changes
	job
	lives
	progress

	seq  uint64
	rate *rate.Limiter
	gate *gate
	done chan struct{} // closed when its end is visible
	// emit is held by the one that sends a notification of this task: a channel, which may be held while its
	// holder waits.
	emit chan struct{}
}

// job is what a task is to do.
type job struct {
	work    Body // nil for one that no process runs any more
	timeout time.Duration
	box     *inbox.Box // of a sub-agent, else nil
	was     []byte     // the record of a task that is resumed, which another process may resume, too
}

// lives are the contexts of a task.
type lives struct {
	body   context.Context         //nolint:containedctx // what the body gets, but for its timeout
	cancel context.CancelCauseFunc // ends body
	life   context.Context         //nolint:containedctx // ends when the body does; bounds deliveries of a body that was cancelled
	end    context.CancelFunc      // ends life
}

// progress is where a task stands. Manager.mu guards it.
type progress struct {
	turn    chan struct{} // closed when the task has a place to run
	placed  bool          // whether it has one now
	waiting int           // how many calls of WaitTask its body is in
	acked   bool          // whether its end was acknowledged
}

// ID is the id of the task.
func (t *Task) ID() string { return t.info.ID }

// Emit queues a custom notification to the thread, before anything that the task
// emits later and before its end. It waits while the thread has no room or the
// task emits faster than its rate allows, after a cancellation until the grace
// period is over. What is larger than MaxPayload is cut. It returns false when
// the notification was not accepted or the task has already ended.
func (t *Task) Emit(eventType string, payload any) bool {
	if t.life.Err() != nil {
		return false // without the lock, of which the end of the task must get hold
	}
	t.emit <- struct{}{}
	defer func() { <-t.emit }()
	if len(eventType) > maxType || t.rate.Wait(t.life) != nil {
		return false
	}
	n := abi.Notice{
		Kind: abi.NoticeCustom, TaskID: t.info.ID, EventType: eventType,
		Payload: t.m.fit(t.life, t, t.m.plain(t.life, t, payload), false), Housekeeping: t.info.Class == Housekeeping,
	}
	for i := 0; ; i++ {
		err := t.m.put(t.life, t, nil, &n)
		switch {
		case err == nil:
			return true
		case !errors.Is(err, inbox.ErrFull) || t.life.Err() != nil:
			t.m.count(func(s *Stats) { s.RefusedEvents++ })
			return false
		}
		sleep(t.life.Done(), i, err)
	}
}

// Causes of a body's cancelled context.
var (
	errCancelled = errors.New("background: task cancelled")
	errTimeout   = errors.New("background: task timed out")
)

// outcome is how a task ends.
type outcome struct {
	status Status
	result any
	err    string
}

// run takes a task from its place in the queue to its end.
func (m *Manager) run(t *Task) {
	if t.work == nil {
		m.conclude(t, outcome{status: Failed, err: Orphaned}, "restore_task_metadata")
		return
	}
	op := "task_completion"
	if t.box != nil {
		op = "sub_agent_completion"
	}
	select {
	case <-t.turn:
	case <-t.body.Done():
	}
	info := m.info(t)
	if info.Status == Queued { // it was cancelled before it had a place
		m.conclude(t, outcome{status: Cancelled}, op)
		return
	}
	m.observe(t.body, EventStarted, info)
	ctx, cancel := context.WithTimeoutCause(t.body, t.timeout, errTimeout)
	defer cancel()
	m.conclude(t, m.supervise(ctx, t), op)
}

// supervise runs the body and returns its outcome. A body that still runs when its context has ended and the grace period
// is over is abandoned.
func (m *Manager) supervise(ctx context.Context, t *Task) outcome {
	ended := make(chan outcome, 1)
	go m.call(ctx, t, ended)
	select {
	case o := <-ended:
		return o
	case <-ctx.Done():
	}
	grace := time.NewTimer(m.cfg.Grace)
	defer grace.Stop()
	select {
	case o := <-ended:
		return o
	case <-grace.C:
	}
	m.count(func(s *Stats) { s.Abandoned++ })
	m.cfg.Logger.ErrorContext(ctx, "task body ignored cancellation and was abandoned",
		"task_id", t.info.ID, "task_type", t.info.Type, "grace", m.cfg.Grace)
	return outcome{status: Failed, err: fmt.Sprintf("abandoned: the body continued for %s after: %s", m.cfg.Grace, reason(ctx, t))}
}

// call runs the body and sends its outcome, also when it panics or ends its goroutine.
func (m *Manager) call(ctx context.Context, t *Task, ended chan<- outcome) {
	o := outcome{status: Failed, err: "the body ended its goroutine without returning"}
	defer func() {
		if p := recover(); p != nil {
			o = outcome{status: Failed, err: fmt.Sprintf("panic: %v", p)}
			m.cfg.Logger.ErrorContext(ctx, "task body panicked",
				"task_id", t.info.ID, "task_type", t.info.Type, "stack", string(debug.Stack()))
		}
		ended <- o
	}()
	result, err := t.work(ctx, t)
	switch {
	case err == nil:
		o = outcome{status: Completed, result: m.plain(ctx, t, result)}
	case errors.Is(context.Cause(ctx), errTimeout):
		o = outcome{status: Failed, err: reason(ctx, t)}
	case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, errCancelled)):
		o = outcome{status: Cancelled}
	default:
		o = outcome{status: Failed, err: err.Error()}
	}
}

// reason is why a body's context ended.
func reason(ctx context.Context, t *Task) string {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return fmt.Sprintf("timed out after %s", t.timeout)
	}
	return "cancelled"
}

// observe notifies the observer, whose code may panic.
func (m *Manager) observe(ctx context.Context, kind EventKind, info Info) {
	if m.cfg.Observe == nil {
		return
	}
	if err := guard("Observe", func() error { m.cfg.Observe(Event{Kind: kind, Task: info}); return nil }); err != nil {
		m.cfg.Logger.ErrorContext(ctx, "observer panicked", "task_id", info.ID, "task_type", info.Type, "error", err)
	}
}

// guard calls what a field of the Config is, and returns its panic as an error.
func guard(field string, call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic of Config.%s: %.256v", field, p)
		}
	}()
	return call()
}
