package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/store"
)

// Defaults of [Config].
const (
	DefaultMaxEntry = 1 << 20
	DefaultDebounce = 50 * time.Millisecond
	DefaultRetry    = time.Second
	DefaultMaxRetry = 5 * time.Minute
	DefaultLease    = time.Hour
)

// Config makes an [Inbox]. Store is required. A zero limit means its default.
type Config struct {
	// Store keeps what is queued. The caller closes it, after the Inbox.
	Store store.Store
	// Shared reports that other processes use the store, too. Expired is called when one of them has ended
	// without closing its Inbox; background.Manager.Recover is for it.
	Shared  bool
	Expired func(ctx context.Context)
	// Acknowledged is called with the tasks whose ends were acknowledged, in order to forget them.
	// background.Manager.Acknowledge is for it.
	Acknowledged func(ctx context.Context, thread string, tasks ...string)
	// Depth is how many entries of a thread may be unacknowledged, [DefaultDepth] when 0.
	Depth int
	// MaxEntry bounds one notification, in bytes of JSON.
	MaxEntry int
	// Debounce is how long to wait for more notifications before the first wake; Retry is how
	// long until the second. The time doubles up to MaxRetry.
	Debounce, Retry, MaxRetry time.Duration
	// Lease is how long a delivery has its notifications before another one may take them.
	Lease  time.Duration
	Now    func() time.Time
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Expired == nil {
		c.Expired = func(context.Context) {}
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
	if c.Store == nil {
		return errors.New("inbox: Config.Store is missing")
	}
	for name, value := range map[string]int64{
		"Depth": int64(c.Depth), "MaxEntry": int64(c.MaxEntry), "Debounce": int64(c.Debounce),
		"Retry": int64(c.Retry), "MaxRetry": int64(c.MaxRetry), "Lease": int64(c.Lease),
	} {
		if value < 0 {
			return fmt.Errorf("inbox: Config.%s is negative", name)
		}
	}
	return nil
}

// Inbox keeps notifications for threads until they are acknowledged. Make one with [New].
type Inbox struct {
	cfg   Config
	owner string
	once  sync.Once

	mu     sync.Mutex
	wake   func(ctx context.Context, thread string) error // set by Start
	queues map[string]*queue
	closed bool
	stop   context.Context //nolint:containedctx // ends wakes when the Inbox closes
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// New makes an Inbox. Unacknowledged entries of its store are unread. It wakes
// no thread before [Inbox.Start].
func New(ctx context.Context, cfg Config) (*Inbox, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	o := &Inbox{cfg: cfg, owner: uuid.NewString(), queues: map[string]*queue{}}
	if cfg.Shared {
		if err := o.renew(ctx); err != nil {
			return nil, err
		}
	}
	if err := o.load(ctx); err != nil {
		return nil, fmt.Errorf("inbox: open: %w", err)
	}
	o.stop, o.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if cfg.Shared {
		o.wg.Go(func() {
			o.every(processRenew, "renew the process, whose tasks others take over otherwise", o.keepAlive)
		})
	}
	return o, nil
}

// load enters what is in the store.
func (o *Inbox) load(ctx context.Context) error {
	threads, err := o.Threads(ctx)
	if err != nil {
		return err
	}
	for _, thread := range threads {
		if err := o.scan(ctx, thread, true, all); err != nil {
			return err
		}
	}
	return nil
}

// Close stops wakes and waits for those that run, or until ctx is done. What is
// queued stays in the store. Closing again waits again.
func (o *Inbox) Close(ctx context.Context) error {
	o.mu.Lock()
	o.closed = true // timers do nothing from now on
	o.mu.Unlock()
	o.cancel()
	done := make(chan struct{})
	go func() {
		o.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		if o.cfg.Shared {
			return o.leave(ctx)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("inbox: close: %w", context.Cause(ctx))
	}
}

// Deliver queues a notification that is not from a task.
func (o *Inbox) Deliver(ctx context.Context, thread string, n abi.Notice) error {
	return o.Commit(ctx, thread, "", nil, &n)
}

// Threads lists the threads that have records or notifications, in order. What another process added may be missing for some seconds.
func (o *Inbox) Threads(ctx context.Context) ([]string, error) {
	groups, err := o.cfg.Store.Count(ctx, threadIndex)
	return slices.Sorted(maps.Keys(groups)), wrap("", err)
}

// Records returns the last record of each task of a thread.
func (o *Inbox) Records(ctx context.Context, thread string) (map[string][]byte, error) {
	s, err := o.cfg.Store.Read(ctx, thread, store.Query{Cells: []store.Range{store.All(recordKind)}})
	out := make(map[string][]byte, len(s.Cells))
	for _, c := range s.Cells {
		out[c.Key] = c.Value
	}
	return out, wrap(thread, err)
}

// Unread lists the tasks of a thread whose ends are not acknowledged, oldest first.
func (o *Inbox) Unread(ctx context.Context, thread string) (tasks []string, err error) {
	err = o.scan(ctx, thread, false, func(_ *queue, page []entry) bool {
		for i := range page {
			if n, err := decodeNotice(page[i].data); err == nil && ends(n.Kind) {
				tasks = append(tasks, n.TaskID)
			}
		}
		return true
	})
	return tasks, err
}

func wrap(thread string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("inbox: thread %.80q: %w", thread, err)
}
