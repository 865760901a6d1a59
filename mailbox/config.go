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
	DefaultCloseWait      = 5 * time.Second
	DefaultEvents         = 1024
	DefaultStreams        = 256
	DefaultStreamTTL      = 5 * time.Minute
	DefaultEventBytes     = 4 << 20
	DefaultStreamBytes    = 64 << 20
	DefaultEventPause     = 100 * time.Millisecond
	DefaultEventTTL       = time.Hour
	DefaultStartAttempts  = 1
	DefaultStartRetry     = 250 * time.Millisecond
	DefaultSignalBatch    = 32
	DefaultSignalWait     = 500 * time.Millisecond
	DefaultSignalHandlers = 32
	DefaultNackDelay      = 500 * time.Millisecond
	DefaultMaxNackDelay   = 30 * time.Second
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
	// will not lose it. The same command may come twice, under one id. A panic refuses it.
	Steer(ctx context.Context, run string, c Command) bool
}

// Judge is a [Runtime] that can tell what decisions are about before they are queued.
type Judge interface {
	// Judge binds decisions about a run to what it waits for, so that none is taken for an answer to a later question. It goes by
	// the thread's image alone, and is quick. With an [ErrRefused] one of them is about nothing that waits; the others come back
	// bound all the same, and that one too as far as it is known what it was about.
	Judge(run string, image []byte, list []Decision) ([]Decision, error)
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
	// Queue bounds and orders what is queued; its Store, Observers, Now and NewID are those of
	// this Config.
	Queue QueueConfig

	// Lease is how long a claim lasts without being renewed, SuspendedLease while its
	// run waits for somebody, and Renew how often it is renewed.
	Lease, SuspendedLease, Renew time.Duration
	// Poll is how often to look for what other processes have queued.
	Poll time.Duration
	// GCInterval is how often old dispatches are dropped: dead letters after DeadTTL, others
	// after TTL. Negative never. Runs, messages and the image stay for as long as their thread does: see [Queue.Drop].
	GCInterval, TTL, DeadTTL time.Duration
	// MaxAttempts and the delays between them are for requests that say nothing of it.
	MaxAttempts               int
	RetryDelay, MaxRetryDelay time.Duration
	// Workers is how many executions this process has at once. TenantWorkers is how many of
	// them a tenant may have; 0 is no limit. A foreground request gets one beyond these bounds.
	Workers, TenantWorkers int
	// MaxClaims is how many executions all processes that share the store have at once, and
	// MaxTenantClaims how many of them a tenant may have; 0 is no limit. They hold for foreground
	// requests, too. All processes should have the same bounds. They are never exceeded, see [Reader.Claims]; processes that
	// claim at once may all give back, and try again.
	MaxClaims, MaxTenantClaims int
	// StopWait is how long a foreground request waits for the run before it to give way.
	StopWait time.Duration
	// LiveWait is how long a command to another process may take.
	LiveWait time.Duration
	// CloseWait is how long Close waits for executions that it asked to end.
	CloseWait time.Duration
	// Events is how many events of a dispatch are kept for those who attach later, with no more than EventBytes: the
	// latest ones. Streams of dispatches that are terminal are kept for StreamTTL, Streams of them at most, with no more than
	// StreamBytes together.
	Events, Streams         int
	EventBytes, StreamBytes int
	StreamTTL               time.Duration
	// EventPause is how long events wait to be shared with other processes in one write, if the store has an
	// [EventLog]; none are shared if it is negative. The latest of a dispatch are kept there for EventTTL: as many as Events, and of
	// no more than EventBytes, about; an execution in another process counts anew.
	EventPause, EventTTL time.Duration
	// StartAttempts is how often Start looks at what is left from former processes before it
	// gives up, StartRetry the pause between.
	StartAttempts int
	StartRetry    time.Duration
	// Wake makes the request by which a run goes on that waits for background tasks while the
	// mailbox starts, or returns false to leave it. It is asked once for each time that a run
	// came to wait, whatever starts again. Nil leaves them all.
	Wake func(Run) (Request, bool)
	// Maintain is called after each GC, on its goroutine.
	Maintain func(context.Context) error
	// SignalBatch is how many signals to take at once, SignalWait how long to wait for one, and
	// SignalHandlers how many are looked at concurrently. A signal for a thread that is claimed
	// comes again after NackDelay, doubled each time up to MaxNackDelay; a thread that fails is left alone as long, and the
	// others have their turn.
	SignalBatch, SignalHandlers         int
	SignalWait, NackDelay, MaxNackDelay time.Duration

	// Observers are told what happens, in their order.
	Observers []Observer
	// Now is the clock of this process; time.Now when nil. Where the store has a clock, see [Clock], that one counts, and a Now that
	// differs from it is logged.
	Now   func() time.Time
	NewID func() string

	// ownIDs is set if NewID is the default: its ids are random.
	ownIDs bool
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewID == nil {
		c.ownIDs = true
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
		{&c.CloseWait, DefaultCloseWait},
		{&c.StreamTTL, DefaultStreamTTL},
		{&c.EventPause, DefaultEventPause},
		{&c.EventTTL, DefaultEventTTL},
		{&c.StartRetry, DefaultStartRetry},
		{&c.SignalWait, DefaultSignalWait},
		{&c.NackDelay, DefaultNackDelay},
		{&c.MaxNackDelay, DefaultMaxNackDelay},
	} {
		*f.field = cmp.Or(*f.field, f.value)
	}
	for _, f := range []struct {
		field *int
		value int
	}{
		{&c.MaxAttempts, DefaultMaxAttempts},
		{&c.Workers, DefaultWorkers},
		{&c.Events, DefaultEvents},
		{&c.Streams, DefaultStreams},
		{&c.EventBytes, DefaultEventBytes},
		{&c.StreamBytes, DefaultStreamBytes},
		{&c.StartAttempts, DefaultStartAttempts},
		{&c.SignalBatch, DefaultSignalBatch},
		{&c.SignalHandlers, DefaultSignalHandlers},
	} {
		*f.field = cmp.Or(*f.field, f.value)
	}
	c.Queue.Store, c.Queue.Observers, c.Queue.Now, c.Queue.NewID = c.Store, c.Observers, c.Now, c.NewID
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
	if err := checkID("owner", c.Owner); err != nil {
		return fmt.Errorf("mailbox: Config.Owner: %w", err)
	}
	for name, value := range map[string]int64{
		"Lease": int64(c.Lease), "SuspendedLease": int64(c.SuspendedLease), "Renew": int64(c.Renew), "Poll": int64(c.Poll), "TTL": int64(c.TTL), "DeadTTL": int64(c.DeadTTL),
		"RetryDelay": int64(c.RetryDelay), "MaxRetryDelay": int64(c.MaxRetryDelay), "MaxAttempts": int64(c.MaxAttempts),
		"Workers": int64(c.Workers), "StopWait": int64(c.StopWait), "LiveWait": int64(c.LiveWait), "CloseWait": int64(c.CloseWait), "Events": int64(c.Events),
		"Streams": int64(c.Streams), "StreamTTL": int64(c.StreamTTL), "EventTTL": int64(c.EventTTL), "EventBytes": int64(c.EventBytes),
		"StreamBytes":   int64(c.StreamBytes),
		"StartAttempts": int64(c.StartAttempts), "StartRetry": int64(c.StartRetry),
		"SignalBatch": int64(c.SignalBatch), "SignalHandlers": int64(c.SignalHandlers), "SignalWait": int64(c.SignalWait),
		"NackDelay": int64(c.NackDelay), "MaxNackDelay": int64(c.MaxNackDelay),
	} {
		if value <= 0 {
			return fmt.Errorf("mailbox: Config.%s is negative", name)
		}
	}
	return nil
}
