package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Defaults of [Config].
const (
	DefaultDepth    = 4096
	DefaultMaxEntry = 1 << 20
	DefaultDebounce = 50 * time.Millisecond
	DefaultRetry    = time.Second
	DefaultMaxRetry = 5 * time.Minute
	DefaultLease    = time.Hour
)

// Errors for errors.Is.
var (
	// ErrFull is a thread that has as many entries as it may have, or a store. It has a
	// method Full, by which packages that do not know this one see that it is no refusal.
	ErrFull error = fullError{}
	// ErrClosed is an outbox that was closed.
	ErrClosed = errors.New("outbox is closed")
)

type fullError struct{}

func (fullError) Error() string { return "outbox is full" }
func (fullError) Full() bool    { return true }

// Config makes an [Outbox]. The zero Config keeps everything in memory. A zero limit
// means its default.
type Config struct {
	// Store keeps what is queued. Nil means a new [Memory]. Whoever made it closes it,
	// after the Outbox.
	Store Store
	// Acknowledged hears which tasks' ends were acknowledged, in order to forget them.
	// background.Manager.Acknowledge is for it.
	Acknowledged func(ctx context.Context, thread string, tasks ...string)
	// Depth is how many entries of a thread may wait to be acknowledged. Senders wait
	// while there are more.
	Depth int
	// MaxEntry bounds one notice, in bytes of JSON.
	MaxEntry int
	// Debounce is how long to wait for more news before the first wake; Retry is how
	// long until the second. The time doubles up to MaxRetry.
	Debounce, Retry, MaxRetry time.Duration
	// Lease is how long what was taken may stay without an answer before others may
	// take it.
	Lease  time.Duration
	Now    func() time.Time
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Store == nil {
		c.Store = NewMemory()
	}
	if c.Acknowledged == nil {
		c.Acknowledged = func(context.Context, string, ...string) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Depth = cmp.Or(c.Depth, DefaultDepth)
	c.MaxEntry = cmp.Or(c.MaxEntry, DefaultMaxEntry)
	c.Debounce = cmp.Or(c.Debounce, DefaultDebounce)
	c.Retry = cmp.Or(c.Retry, DefaultRetry)
	c.MaxRetry = cmp.Or(c.MaxRetry, DefaultMaxRetry)
	c.Lease = cmp.Or(c.Lease, DefaultLease)
	return c
}

func (c Config) validate() error {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"Depth", int64(c.Depth)},
		{"MaxEntry", int64(c.MaxEntry)},
		{"Debounce", int64(c.Debounce)},
		{"Retry", int64(c.Retry)},
		{"MaxRetry", int64(c.MaxRetry)},
		{"Lease", int64(c.Lease)},
	} {
		if f.value < 0 {
			return fmt.Errorf("outbox: Config.%s is negative", f.name)
		}
	}
	return nil
}

// Outbox queues notices for threads until they are acknowledged. Make one with
// [New].
type Outbox struct {
	cfg  Config
	wake func(ctx context.Context, thread string) error // set by Start, before the waker begins
	once sync.Once

	mu     sync.Mutex
	queues map[string]*queue
	closed bool
	next   time.Time       // when the waker looks next, zero when it does not know
	alarm  chan struct{}   // tells the waker that it is earlier
	stop   context.Context //nolint:containedctx // ends wakes when the Outbox closes
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// New makes an Outbox. What its store holds from before is news again. It wakes
// nobody before [Outbox.Start].
func New(ctx context.Context, cfg Config) (*Outbox, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	o := &Outbox{cfg: cfg, queues: map[string]*queue{}, alarm: make(chan struct{}, 1)}
	if err := o.load(ctx); err != nil {
		return nil, fmt.Errorf("outbox: open: %w", err)
	}
	o.stop, o.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return o, nil
}

// load counts what is in the store.
func (o *Outbox) load(ctx context.Context) error {
	threads, err := o.cfg.Store.Threads(ctx)
	if err != nil {
		return err
	}
	for _, thread := range threads {
		for after := uint64(0); ; {
			entries, err := o.cfg.Store.Pending(ctx, thread, after, DefaultDepth)
			if err != nil {
				return err
			}
			if len(entries) == 0 {
				break
			}
			after = entries[len(entries)-1].Seq
			o.mu.Lock()
			q := o.queue(thread)
			for i := range entries {
				n, err := decodeNotice(entries[i].Data)
				q.add(entries[i].Seq, err == nil && n.Housekeeping)
			}
			o.arrived(q)
			o.mu.Unlock()
		}
	}
	return nil
}

// queue returns that of a thread. The caller holds the lock.
func (o *Outbox) queue(thread string) *queue {
	q := o.queues[thread]
	if q == nil {
		q = newQueue()
		o.queues[thread] = q
	}
	return q
}

// tidy forgets a thread of which nothing is queued. The caller holds the lock.
func (o *Outbox) tidy(thread string) {
	if q := o.queues[thread]; q != nil && q.waiting() == 0 && !q.wake.running {
		delete(o.queues, thread)
	}
}

// Close stops wakes and waits for those that run, or until ctx is done. What is
// queued stays in the store. Closing again waits again.
func (o *Outbox) Close(ctx context.Context) error {
	o.mu.Lock()
	o.closed = true
	for _, q := range o.queues {
		q.madeRoom() // they find the outbox closed
	}
	o.mu.Unlock()
	o.cancel()
	done := make(chan struct{})
	go func() {
		o.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("outbox: close: %w", context.Cause(ctx))
	}
}

// Deliver queues a notice for a thread. It has the form of background.Config's
// Deliver.
func (o *Outbox) Deliver(ctx context.Context, thread string, n abi.Notice) error {
	return o.Commit(ctx, thread, "", nil, &n)
}

// Forget drops the records of tasks, and allows their ids to be used again.
func (o *Outbox) Forget(ctx context.Context, thread string, tasks ...string) error {
	return wrap(thread, o.cfg.Store.Forget(ctx, thread, tasks...))
}

// Threads lists the threads that have records or notices.
func (o *Outbox) Threads(ctx context.Context) ([]string, error) {
	threads, err := o.cfg.Store.Threads(ctx)
	return threads, wrap("", err)
}

// Records returns the last record of each task of a thread.
func (o *Outbox) Records(ctx context.Context, thread string) (map[string][]byte, error) {
	records, err := o.cfg.Store.Records(ctx, thread)
	return records, wrap(thread, err)
}

// Unread lists the tasks of a thread whose ends are not acknowledged, oldest first.
func (o *Outbox) Unread(ctx context.Context, thread string) ([]string, error) {
	var tasks []string
	for after := uint64(0); ; {
		entries, err := o.cfg.Store.Pending(ctx, thread, after, DefaultDepth)
		if err != nil || len(entries) == 0 {
			return tasks, wrap(thread, err)
		}
		after = entries[len(entries)-1].Seq
		for i := range entries {
			if n, err := decodeNotice(entries[i].Data); err == nil && ends(n.Kind) {
				tasks = append(tasks, n.TaskID)
			}
		}
	}
}

func wrap(thread string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("outbox: thread %.80q: %w", thread, err)
}
