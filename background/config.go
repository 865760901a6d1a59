package background

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// Ledger keeps tasks and their notifications beyond the process. inbox.Inbox is one.
// One ledger belongs to one Manager. It must be safe for concurrent use.
type Ledger interface {
	// Commit keeps the record of a task, if one is named, and queues a notification for
	// the thread, if there is one: both or neither, and for good when it returns
	// nil. It may wait for room until ctx is done, which may be soon; the error then has a
	// method Full() bool that is true.
	Commit(ctx context.Context, thread, task string, record []byte, n *abi.Notice) error
	// Forget drops the records of tasks that are not needed any more.
	Forget(ctx context.Context, thread string, tasks ...string) error
	// Threads lists the threads that have records or notifications.
	Threads(ctx context.Context) ([]string, error)
	// Records returns the last record of each task of a thread.
	Records(ctx context.Context, thread string) (map[string][]byte, error)
	// Unread lists the tasks of a thread whose ends are queued and not acknowledged.
	Unread(ctx context.Context, thread string) ([]string, error)
}

// Owners is what a [Ledger] of several processes also implements. inbox.Inbox does.
type Owners interface {
	// Owner is the name of this process.
	Owner() string
	// Alive returns the processes whose tasks must not be recovered.
	Alive(ctx context.Context) (map[string]bool, error)
	// Claim replaces the record of a task if it is still was, and reports whether it was.
	Claim(ctx context.Context, thread, task string, was, record []byte) (bool, error)
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

// Config makes a [Manager]. Deliver, Ledger, or both are required. A zero limit means its
// default.
type Config struct {
	// Deliver hands a notification to the owner of a thread. It may wait for room until
	// ctx is done, which may be soon: see the package comment. On an error the notification
	// must not have been accepted. An error with a method Full() bool that is true, such
	// as inbox.ErrFull, means that there was no room: an end is then delivered again. Any
	// other, but that of ctx, is a refusal for good: the notification goes to the Ledger then, and
	// without one it is lost. It must not call the Manager.
	Deliver func(ctx context.Context, thread string, n abi.Notice) error
	// Ledger replaces Deliver where notifications and tasks must outlive the
	// process. With both, Deliver gets the notifications of housekeeping, which are of use to this
	// process alone, and the Ledger gets those that Deliver refuses.
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
	// MaxRunning bodies run at a time, MaxPerThread of them for one thread, counted
	// apart for work (blocking and detached), services and housekeeping. MaxQueued
	// more tasks may wait for their turn.
	MaxRunning   int
	MaxPerThread int
	MaxQueued    int
	// Keep is how many ended tasks stay readable through Get and List after their
	// notification was accepted, or acknowledged if there is a Ledger.
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
	if c.Deliver == nil && c.Ledger == nil {
		return errors.New("background: Config.Deliver is missing, and there is no Ledger")
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"MaxRunning", int64(c.MaxRunning)},
		{"MaxPerThread", int64(c.MaxPerThread)},
		{"MaxQueued", int64(c.MaxQueued)},
		{"Keep", int64(c.Keep)},
		{"Timeout", int64(c.Timeout)},
		{"ServiceTimeout", int64(c.ServiceTimeout)},
		{"Grace", int64(c.Grace)},
		{"EventsPerSecond", int64(c.EventsPerSecond)},
		{"MaxPayload", int64(c.MaxPayload)},
		{"MaxError", int64(c.MaxError)},
		{"MaxAttempts", int64(c.MaxAttempts)},
	} {
		if f.value < 0 {
			return fmt.Errorf("background: Config.%s is negative", f.name)
		}
	}
	return nil
}
