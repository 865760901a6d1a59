package background

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/abi"
)

// Defaults of [Config].
const (
	DefaultMaxRunning      = 16
	DefaultMaxPerThread    = 8
	DefaultMaxQueued       = 1024
	DefaultKeep            = 1024
	DefaultTimeout         = 10 * time.Minute
	DefaultServiceTimeout  = 24 * time.Hour
	DefaultGrace           = 5 * time.Second
	DefaultEventsPerSecond = 1000
	DefaultMaxPayload      = 64 << 10
	DefaultMaxError        = 3000
	DefaultMaxAttempts     = 3
)

// Sentinels of Spawn.
var (
	ErrClosed    = errors.New("background: manager is closed")
	ErrQueueFull = errors.New("background: too many tasks wait for a place")
)

// Ledger keeps tasks and their notifications. inbox.Inbox is one, over a store in memory if they need not outlive the
// process. One ledger belongs to one Manager. It must be safe for concurrent use, and must not call the Manager.
type Ledger interface {
	// Commit keeps the record of a task, if there is one, and queues a notification for the thread, if there is one: both
	// or neither, and for good when it returns nil. It returns soon, and does not wait for room: an error that is
	// inbox.ErrFull reports that there was none. One that is inbox.ErrDropped reports a notification of a task whose record
	// is gone, with its thread: nothing was changed.
	Commit(ctx context.Context, thread, task string, record []byte, n *abi.Notice) error
	// Claim replaces the record of a task if it is still was, and reports whether it was.
	Claim(ctx context.Context, thread, task string, was, record []byte) (bool, error)
	// Forget drops the records of tasks that are not needed any more.
	Forget(ctx context.Context, thread string, tasks ...string) error
	// Threads lists the threads that have records or notifications.
	Threads(ctx context.Context) ([]string, error)
	// Records returns the last record of each task of a thread.
	Records(ctx context.Context, thread string) (map[string][]byte, error)
	// Unread lists the tasks of a thread whose ends are queued and not acknowledged.
	Unread(ctx context.Context, thread string) ([]string, error)
	// Owner is the name of this process.
	Owner() string
	// Alive returns the processes whose tasks must not be recovered.
	Alive(ctx context.Context) (map[string]bool, error)
}

// EventKind is what happened to a task.
type EventKind string

// Kinds of events.
const (
	EventStarted  EventKind = "started"
	EventFinished EventKind = "finished"
)

// Event is for a user interface. What must not be lost is in the notifications.
type Event struct {
	Kind EventKind
	Task Info
}

// Limits bounds the tasks of a [Manager]. A zero field means its default.
type Limits struct {
	// MaxRunning bodies run at a time, MaxPerThread of them for one thread, counted
	// apart for work (blocking and detached), services and housekeeping. MaxQueued
	// more tasks may wait for their turn.
	MaxRunning   int
	MaxPerThread int
	MaxQueued    int
	// Keep is how many ended tasks stay readable through Get and List after their
	// end was acknowledged.
	Keep int
	// Timeout ends a body that runs longer, unless its Spec has a timeout;
	// ServiceTimeout is for services.
	Timeout        time.Duration
	ServiceTimeout time.Duration
	// EventsPerSecond is what one task may emit, after a burst of as many. A task
	// that emits faster waits.
	EventsPerSecond int
	// MaxPayload bounds a result and what Emit takes, in bytes of text. MaxError
	// bounds the text of an error.
	MaxPayload int
	MaxError   int
	// MaxAttempts is how often a body is started, if Resume has a body for it after a
	// restart.
	MaxAttempts int
	// Grace is how long a cancelled body may take to return.
	Grace time.Duration
}

// Config makes a [Manager]. Ledger is required.
type Config struct {
	Limits

	// Ledger has the tasks, and gets their notifications.
	Ledger Ledger
	// Observe is called when a task starts and when it has finished, on the goroutine of
	// the task. It must return soon.
	Observe func(Event)
	// Shorten stores a large text of a thread elsewhere and returns what replaces it; blob.Store.Shorten is one.
	// It gets results that are text, and everything larger
	// than MaxPayload; label is the type of the task. Nil cuts.
	Shorten func(ctx context.Context, thread, label, text string) string
	// Resume returns the body with which a task is resumed after a restart, or nil when
	// it cannot. Nil resumes nothing.
	Resume func(Info) Body
	// Forward sends a message to a thread that is not a task's, and returns an id for
	// it. It serves send_message. Nil makes such a message unavailable.
	Forward func(ctx context.Context, m Message) (id string, err error)
	// NewID makes task ids, unique across processes. Nil means "bg_" and a
	// time-ordered UUID.
	NewID func() string
	// Now is the clock for the times in [Info]. Nil means time.Now.
	Now func() time.Time
	// Logger gets abandoned bodies, panics and lost notifications. Nil discards.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.NewID == nil {
		c.NewID = func() string { return "bg_" + uuid.Must(uuid.NewV7()).String() }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.MaxRunning = cmp.Or(c.MaxRunning, DefaultMaxRunning)
	c.MaxPerThread = cmp.Or(c.MaxPerThread, DefaultMaxPerThread)
	c.MaxQueued = cmp.Or(c.MaxQueued, DefaultMaxQueued)
	c.Keep = cmp.Or(c.Keep, DefaultKeep)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.ServiceTimeout = cmp.Or(c.ServiceTimeout, DefaultServiceTimeout)
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	c.EventsPerSecond = cmp.Or(c.EventsPerSecond, DefaultEventsPerSecond)
	c.MaxPayload = cmp.Or(c.MaxPayload, DefaultMaxPayload)
	c.MaxError = cmp.Or(c.MaxError, DefaultMaxError)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, DefaultMaxAttempts)
	return c
}

func (c Config) validate() error {
	if c.Ledger == nil {
		return errors.New("background: Config.Ledger is missing")
	}
	for field, value := range reflect.ValueOf(c.Limits).Fields() {
		if value.Int() < 0 {
			return fmt.Errorf("background: Config.%s is negative", field.Name)
		}
	}
	return nil
}
