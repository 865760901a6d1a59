package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Defaults of [Config].
const (
	DefaultLease          = 30 * time.Second
	DefaultSuspendedLease = 10 * time.Minute
	DefaultRenew          = 10 * time.Second
	DefaultPoll           = time.Second
	DefaultGCInterval     = time.Minute
	DefaultTTL            = 24 * time.Hour
	DefaultDeadTTL        = 30 * 24 * time.Hour
	DefaultMaxAttempts    = 5
	DefaultRetryDelay     = 250 * time.Millisecond
	DefaultMaxRetryDelay  = 30 * time.Second
	DefaultWorkers        = 32
	DefaultStopWait       = 5 * time.Second
	DefaultLiveWait       = 5 * time.Second
	DefaultEvents         = 1024
)

// Runtime carries out runs.
type Runtime interface {
	// Run carries out one execution. It ends soon when ctx does; context.Cause says why:
	// [ErrStopped], [ErrLeaseLost] or [ErrShutdown]. An error counts as in [Classify]. What it
	// writes it writes with the job, which nobody else can then.
	Run(ctx context.Context, j *Job) (Result, error)
}

// Steerer is a [Runtime] whose runs take commands under way.
type Steerer interface {
	// Steer hands a command to a run under way. True means that the run has it and
	// will not lose it. The same command may come twice, under one id.
	Steer(ctx context.Context, run string, c Command) bool
}

// Causes for which the context of an execution ends.
var (
	// ErrStopped is an execution that somebody cancelled or interrupted.
	ErrStopped = errors.New("stopped")
	// ErrLeaseLost is one that does not hold its thread any more.
	ErrLeaseLost = errors.New("the lease was lost")
	// ErrShutdown is one whose mailbox closes; somebody else will carry it out.
	ErrShutdown = errors.New("the mailbox is closing")
)

// ErrPermanent marks an error that no retry mends.
var ErrPermanent = errors.New("permanent failure")

// Config makes a [Mailbox]. Zero fields mean their defaults.
type Config struct {
	// Store and Runtime are required. Whoever made them closes them, after the Mailbox.
	Store   Store
	Runtime Runtime
	// Owner names this process among those that share the store; made up when empty.
	Owner string
	// Queue bounds and orders what is queued; its Store, Now and NewID are those of
	// this Config.
	Queue QueueConfig

	// Lease is how long a claim lasts without being renewed, SuspendedLease while its
	// run waits for somebody, and Renew how often it is renewed.
	Lease, SuspendedLease, Renew time.Duration
	// Poll is how often to look for what other processes have queued.
	Poll time.Duration
	// GCInterval is how often old dispatches are dropped: dead letters after DeadTTL, others
	// after TTL. Negative never.
	GCInterval, TTL, DeadTTL time.Duration
	// MaxAttempts and the delays between them are for requests that say nothing of it.
	MaxAttempts               int
	RetryDelay, MaxRetryDelay time.Duration
	// Workers is how many executions this process has at once. TenantWorkers is how many of
	// them a tenant may have; 0 is no limit.
	Workers, TenantWorkers int
	// StopWait is how long a foreground request waits for the run before it to give way.
	StopWait time.Duration
	// LiveWait is how long a command to another process may take.
	LiveWait time.Duration
	// Events is how many events of a run are kept for those who attach later.
	Events int

	Now    func() time.Time
	NewID  func() string
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewID == nil {
		c.NewID = newID
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Owner == "" {
		c.Owner = c.NewID()
	}
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.Lease, DefaultLease},
		{&c.SuspendedLease, DefaultSuspendedLease},
		{&c.Renew, DefaultRenew},
		{&c.Poll, DefaultPoll},
		{&c.GCInterval, DefaultGCInterval},
		{&c.TTL, DefaultTTL},
		{&c.DeadTTL, DefaultDeadTTL},
		{&c.RetryDelay, DefaultRetryDelay},
		{&c.MaxRetryDelay, DefaultMaxRetryDelay},
		{&c.StopWait, DefaultStopWait},
		{&c.LiveWait, DefaultLiveWait},
	} {
		*f.field = cmp.Or(*f.field, f.value)
	}
	c.MaxAttempts = cmp.Or(c.MaxAttempts, DefaultMaxAttempts)
	c.Workers = cmp.Or(c.Workers, DefaultWorkers)
	c.Events = cmp.Or(c.Events, DefaultEvents)
	c.Queue.Store, c.Queue.Now, c.Queue.NewID = c.Store, c.Now, c.NewID
	return c
}

func (c Config) validate() error {
	switch {
	case c.Store == nil:
		return errors.New("mailbox: Config.Store is nil; open one of the packages in store")
	case c.Runtime == nil:
		return errors.New("mailbox: Config.Runtime is nil")
	case c.Renew >= c.Lease:
		return fmt.Errorf("mailbox: Config.Renew is %v, and a lease lasts %v; renew at least twice in that time", c.Renew, c.Lease)
	}
	for name, value := range map[string]int64{
		"Lease": int64(c.Lease), "SuspendedLease": int64(c.SuspendedLease), "Renew": int64(c.Renew), "Poll": int64(c.Poll),
		"RetryDelay": int64(c.RetryDelay), "MaxRetryDelay": int64(c.MaxRetryDelay), "MaxAttempts": int64(c.MaxAttempts),
		"Workers": int64(c.Workers), "StopWait": int64(c.StopWait), "LiveWait": int64(c.LiveWait), "Events": int64(c.Events),
	} {
		if value <= 0 {
			return fmt.Errorf("mailbox: Config.%s is negative", name)
		}
	}
	return nil
}
