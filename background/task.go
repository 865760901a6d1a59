package background

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Class says what a task means to the run that owns it.
type Class string

// Classes.
const (
	// Blocking tasks are waited for: their run is not done before they are. It is
	// the default.
	Blocking Class = "blocking"
	// Detached tasks report, but nobody waits for them.
	Detached Class = "detached"
	// Service tasks run until they are cancelled.
	Service Class = "service"
	// Housekeeping tasks are the runtime's own. Their notices are marked so and
	// are never shown to a model.
	Housekeeping Class = "housekeeping"
)

// Status is where a task stands.
type Status string

// Statuses. All but queued and running are terminal.
const (
	Queued    Status = "queued"
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Terminal reports whether a task with this status has ended.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Cancelled }

// Body is the work of a task. The result, and what it emits, must be values of
// the ABI (see the package comment of abi); anything else is converted through
// JSON.
type Body func(ctx context.Context, t *Task) (any, error)

// Spec describes a task to spawn.
type Spec struct {
	// Thread owns the task and gets its notices. Required.
	Thread string
	// Type is a word for reports, "context_compaction" for example. Required.
	Type string
	// Name addresses the task within its thread while it runs. Optional.
	Name        string
	Description string
	// Class is [Blocking] when empty.
	Class Class
	// Timeout of the body, from its start. Zero means that of the [Config].
	Timeout time.Duration
	// Body is the work. Required.
	Body Body
}

func (s *Spec) validate() error {
	switch {
	case s.Thread == "":
		return errors.New("background: Spec.Thread is missing")
	case s.Type == "":
		return errors.New("background: Spec.Type is missing")
	case s.Body == nil:
		return errors.New("background: Spec.Body is missing")
	case s.Timeout < 0:
		return errors.New("background: Spec.Timeout is negative")
	case !slices.Contains([]Class{Blocking, Detached, Service, Housekeeping}, s.Class):
		return fmt.Errorf("background: Spec.Class %q is unknown", s.Class)
	case slices.Contains([]string{"parent", "self", "all", "broadcast"}, s.Name):
		return fmt.Errorf("background: '%s' is a reserved name", s.Name)
	}
	return nil
}

// Info is what is known of a task at one moment.
type Info struct {
	ID          string    `json:"task_id"`
	Thread      string    `json:"owner_thread_id"`
	Type        string    `json:"task_type"`
	Name        string    `json:"name,omitempty"`
	Description string    `json:"description"`
	Class       Class     `json:"class"`
	Status      Status    `json:"status"`
	Error       string    `json:"error,omitempty"`
	Result      any       `json:"result,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
	EndedAt     time.Time `json:"ended_at,omitzero"`
}

// Task is a running task as its body sees it. It is safe for concurrent use.
type Task struct {
	m    *Manager
	spec Spec
	info Info // guarded by Manager.mu

	seq    uint64
	cancel context.CancelCauseFunc // ends the context of the body
	life   context.Context         //nolint:containedctx // ends when the task does; bounds deliveries of a body that was cancelled
	end    context.CancelFunc

	// emit orders the notices of this task; over is set before the terminal one.
	emit gate
	over bool
}

// ID is the id of the task.
func (t *Task) ID() string { return t.info.ID }

// Emit delivers a custom notice to the thread, before anything that the task
// emits later and before its end. It waits while the owner has no room, after a
// cancellation until the grace period is over. It returns false when the notice
// was not accepted or the task has already ended.
func (t *Task) Emit(eventType string, payload any) bool {
	t.emit.lock()
	defer t.emit.unlock()
	if t.over {
		return false
	}
	n := abi.Notice{
		Kind: abi.NoticeCustom, TaskID: t.info.ID, EventType: eventType,
		Payload: plain(payload), Housekeeping: t.spec.Class == Housekeeping,
	}
	return t.m.cfg.Deliver(t.life, t.spec.Thread, n) == nil
}
