package background

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
)

// Body is the work of a task. The result, and what it emits, must be values of
// the ABI (see the package comment of abi); anything else is converted through
// JSON. Work that the body starts should get ctx, or a context made of it: it
// carries the cancellation and the lineage.
type Body func(ctx context.Context, t *Task) (any, error)

// Bounds of the texts of a [Spec], in bytes.
const (
	maxName        = 128
	maxType        = 64
	maxDescription = 4 << 10
)

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
		return fmt.Errorf("background: Spec.Class %.80q is unknown", s.Class)
	case slices.Contains([]string{"parent", "self", "all", "broadcast"}, s.Name):
		return fmt.Errorf("background: '%s' is a reserved name", s.Name)
	}
	for _, f := range []struct {
		name  string
		value string
		limit int
	}{{"Type", s.Type, maxType}, {"ID", s.ID, maxName}, {"Name", s.Name, maxName}, {"Description", s.Description, maxDescription}} {
		if len(f.value) > f.limit {
			return fmt.Errorf("background: Spec.%s has %d bytes, at most %d are allowed", f.name, len(f.value), f.limit)
		}
	}
	return nil
}

// Task is a running task as its body sees it. It is safe for concurrent use.
type Task struct {
	m    *Manager
	spec Spec
	info Info       // guarded by Manager.mu, but for the id
	box  *inbox.Box // of a sub-agent, else nil
	rate *rate.Limiter

	was []byte // the record of a task that is resumed, which another process may resume, too

	seq    uint64
	cancel context.CancelCauseFunc // ends the context of the body
	body   context.Context         //nolint:containedctx // what the body gets, but for its timeout
	life   context.Context         //nolint:containedctx // ends when the task does; bounds deliveries of a body that was cancelled
	end    context.CancelFunc

	turn chan struct{} // closed when the task has a place to run
	// Guarded by Manager.mu: whether the task has a place, how many calls of WaitTask
	// its body is in, whether the body is over, and whether the end was
	// acknowledged.
	placed      bool
	waiting     int
	gone, acked bool

	// emit is held by the one that sends a notification of this task: a channel, which may be held while its
	// holder waits. over is set before the terminal one, and while others hold emit.
	emit chan struct{}
	over atomic.Bool
}

// ID is the id of the task.
func (t *Task) ID() string { return t.info.ID }

// Emit queues a custom notification to the thread, before anything that the task
// emits later and before its end. It waits while the thread has no room or the
// task emits faster than its rate allows, after a cancellation until the grace
// period is over. What is larger than MaxPayload is cut. It returns false when
// the notification was not accepted or the task has already ended.
func (t *Task) Emit(eventType string, payload any) bool {
	if t.over.Load() {
		return false // without the lock, of which the end of the task must get hold
	}
	t.emit <- struct{}{}
	defer func() { <-t.emit }()
	if t.over.Load() || len(eventType) > maxType || t.rate.Wait(t.life) != nil {
		return false
	}
	n := abi.Notice{
		Kind: abi.NoticeCustom, TaskID: t.info.ID, EventType: eventType,
		Payload: t.m.fit(t.life, t, payload, false), Housekeeping: t.spec.Class == Housekeeping,
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
