package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// Config makes a [Mailbox]. Zero fields mean their defaults, those of its parts too.
type Config struct {
	// Store is required. The caller closes it, after the Mailbox.
	Store store.Store
	// Runtime executes runs. A Mailbox without one takes requests in the background, lists, and controls; it refuses Submit, Start and Poll
	// with ErrInvalid, judges no decisions, and needs no Close.
	Runtime Runtime
	// Owner names this process among those that share the store; made up when empty.
	Owner string

	Lease     Lease
	Retry     Retry
	Limits    Limits
	Waits     Waits
	Events    Events
	Retention Retention
	// Poll is how often the store is polled for what is due, 1 s. A process is notified of what others queue, and polls at once then.
	Poll time.Duration

	// Wake makes the request by which a run continues that waits for background tasks while the mailbox starts, or returns false to leave
	// it. It is called once for each time that a run came to wait, whatever starts again. Nil leaves them all.
	Wake func(Run) (Request, bool)
	// Observers receive what happens, in their order.
	Observers []Observer
	// Now is the clock of this process; time.Now when nil. Where the store has a clock, see [store.Clock], that one counts, and a Now that
	// differs from it is logged.
	Now    func() time.Time
	NewID  func() string
	Logger *slog.Logger
}

// Lease bounds claims.
type Lease struct {
	// Duration is how long a claim lasts without being renewed, 30 s; Suspended while its run waits within the process, 10 min; and Renew
	// how often it is renewed, 10 s.
	Duration, Suspended, Renew time.Duration
	// Skew is how long a lease is left alone after its end, since clocks differ, 1 s; none if it is negative: then Now is the clock of all
	// processes, and that of the store is not read.
	Skew time.Duration
}

// Retry bounds attempts.
type Retry struct {
	// Attempts is how often a request is tried that has no number of its own, 5. Between two is Delay, 250 ms, doubled each time up to
	// MaxDelay, 30 s.
	Attempts        int
	Delay, MaxDelay time.Duration
	// Aside is how long a thread whose claim failed is left alone, so that the others have their turn, 500 ms, doubled each time up to
	// MaxAside, 30 s.
	Aside, MaxAside time.Duration
	// Starts is how often Start reads what former processes left before it fails, 1, and StartDelay the pause between, 250 ms.
	Starts     int
	StartDelay time.Duration
}

// Limits bound what is queued and executed.
type Limits struct {
	// Workers is how many executions this process has at once, 32, besides those that are only being settled. TenantWorkers is how many of
	// them a tenant may have; 0 is no limit. A foreground request gets one beyond these bounds.
	Workers, TenantWorkers int
	// Claims is how many executions all processes that share the store have at once, and TenantClaims how many of them a tenant may have;
	// 0 is no limit. They hold for foreground requests, too. All processes should have the same bounds. They are never exceeded; processes
	// that claim at once may all give back, and try again.
	Claims, TenantClaims int
	// Depth is how many dispatches of a thread may be queued, 1000.
	Depth int
	// Request is how many bytes a request may have as it is kept, 8 MiB: bytes in it take a third more there. Commit is how many an
	// execution may write at once, 16 MiB: messages, the image, the run's data and result. What is larger is [ErrTooLarge].
	Request, Commit int
}

// Waits bound how long calls wait for others.
type Waits struct {
	// Stop is how long a foreground request waits for the run before it to yield, 5 s; Live how long a command to another process may
	// take, 5 s; and Close how long [Mailbox.Close] waits for executions that it asked to end, 5 s.
	Stop, Live, Close time.Duration
}

// Events bounds the events that are kept for readers who attach later.
type Events struct {
	// Count is how many events of a dispatch are kept, 1024, with no more than Bytes, 4 MiB: the latest ones.
	Count, Bytes int
	// Pause is how long events wait to be shared with other processes in one write, 100 ms, if the store has [store.Events]; none are
	// shared if it is negative. The latest of a dispatch are kept there for TTL, 1 h: about Count and Bytes; an execution in another
	// process counts anew.
	Pause, TTL time.Duration
}

// Retention bounds what is kept. Nothing is dropped that is queued, executed, waiting or paused. The image stays for as long as its thread
// does.
type Retention struct {
	// Interval is how often old things are dropped, 1 min; never if it is negative. Dead letters are dropped after DeadTTL, 30 days, other
	// dispatches after TTL, 24 h.
	Interval, TTL, DeadTTL time.Duration
	// Threads is how long a thread is kept after its last change, and MaxThreads how many are kept in all, those that were changed last;
	// a thread is dropped with all that is in it, and not before the threads below it. Zero keeps all.
	Threads    time.Duration
	MaxThreads int
	// Runs is how long a run is kept after its end, and MaxRuns how many of a thread; a thread's last run is always kept. Zero keeps all.
	Runs    time.Duration
	MaxRuns int
	// Messages is how long the content of a message is kept, and MaxMessages of how many of a thread, the newest. Dropped is only what a
	// compaction covers and no model sees; the message's place and id stay. Both count when the thread has changed. Zero keeps all.
	Messages    time.Duration
	MaxMessages int
	// Maintain is called after each time, on its goroutine.
	Maintain func(context.Context) error
}

// complete fills in defaults and checks the rest.
func (c *Config) complete() error {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.NewID == nil {
		c.NewID = newID
	}
	c.Owner = cmp.Or(c.Owner, c.NewID())
	c.Retention.Interval = cmp.Or(c.Retention.Interval, time.Minute)
	c.Lease.Skew = cmp.Or(c.Lease.Skew, time.Second)
	c.Events.Pause = cmp.Or(c.Events.Pause, 100*time.Millisecond)
	err := cmp.Or(positive([]setting[time.Duration]{
		{"Lease.Duration", &c.Lease.Duration, 30 * time.Second},
		{"Lease.Suspended", &c.Lease.Suspended, 10 * time.Minute},
		{"Lease.Renew", &c.Lease.Renew, 10 * time.Second},
		{"Poll", &c.Poll, time.Second},
		{"Retention.TTL", &c.Retention.TTL, 24 * time.Hour},
		{"Retention.DeadTTL", &c.Retention.DeadTTL, 30 * 24 * time.Hour},
		{"Retry.Delay", &c.Retry.Delay, 250 * time.Millisecond},
		{"Retry.MaxDelay", &c.Retry.MaxDelay, 30 * time.Second},
		{"Retry.Aside", &c.Retry.Aside, 500 * time.Millisecond},
		{"Retry.MaxAside", &c.Retry.MaxAside, 30 * time.Second},
		{"Retry.StartDelay", &c.Retry.StartDelay, 250 * time.Millisecond},
		{"Waits.Stop", &c.Waits.Stop, 5 * time.Second},
		{"Waits.Live", &c.Waits.Live, 5 * time.Second},
		{"Waits.Close", &c.Waits.Close, 5 * time.Second},
		{"Events.TTL", &c.Events.TTL, time.Hour},
	}), positive([]setting[int]{
		{"Retry.Attempts", &c.Retry.Attempts, 5},
		{"Retry.Starts", &c.Retry.Starts, 1},
		{"Limits.Workers", &c.Limits.Workers, 32},
		{"Limits.Depth", &c.Limits.Depth, 1000},
		{"Limits.Request", &c.Limits.Request, 8 << 20},
		{"Limits.Commit", &c.Limits.Commit, 16 << 20},
		{"Events.Count", &c.Events.Count, 1024},
		{"Events.Bytes", &c.Events.Bytes, 4 << 20},
	}))
	switch r := c.Retention; {
	case c.Store == nil:
		return errors.New("mailbox: Config.Store is nil; open one of the packages in store")
	case err == nil && c.Lease.Renew >= c.Lease.Duration:
		return fmt.Errorf("mailbox: Config.Lease.Renew is %v, and a lease lasts %v; renew at least twice in that time", c.Lease.Renew, c.Lease.Duration)
	case min(r.Threads, r.Runs, r.Messages) < 0 || min(r.MaxThreads, r.MaxRuns, r.MaxMessages) < 0:
		return errors.New("mailbox: Config.Retention: a bound of threads, runs or messages is negative; zero keeps all")
	}
	if err := checkID("owner", c.Owner); err != nil {
		return fmt.Errorf("mailbox: Config.Owner: %w", err)
	}
	return err
}

// setting is a field that must be positive, with its default.
type setting[T cmp.Ordered] struct {
	name  string
	field *T
	value T
}

// positive fills in the defaults, and refuses what is negative.
func positive[T cmp.Ordered](list []setting[T]) (err error) {
	var zero T
	for _, f := range list {
		if *f.field = cmp.Or(*f.field, f.value); *f.field < zero {
			err = cmp.Or(err, fmt.Errorf("mailbox: Config.%s is negative", f.name))
		}
	}
	return err
}
