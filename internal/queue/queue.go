package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/store"
)

// Defaults of [Config].
const (
	defaultDepth        = 1000
	defaultRequestBytes = 8 << 20
	defaultCommitBytes  = 16 << 20
	defaultSkew         = time.Second
	rankStep            = 250 * time.Millisecond
)

// Config makes a [Queue]. Zero fields mean their defaults.
type Config struct {
	// Store keeps everything. Required. The caller closes it.
	Store store.Store
	// Depth is how many dispatches of a thread may be queued, 1000.
	Depth int
	// RequestBytes is how large a request may be as it is kept, 8 MiB: bytes in it take a third more there. CommitBytes is how much an
	// execution may write at once, 16 MiB: messages, the image, the run's data and result. What is larger is [ErrTooLarge].
	RequestBytes, CommitBytes int
	// Skew is how long a lease is left alone after its end, since clocks differ, 1 s; none if it is negative: then Now is the clock of
	// all processes, and that of the store, see [store.Clock], is not read.
	Skew time.Duration
	// Observers receive each operation.
	Observers []Observer
	// Now is the clock of this process; time.Now when nil. Where the store has a clock, that one counts.
	Now   func() time.Time
	NewID func() string
}

// Queue has the transitions of dispatches. Each is atomic, and a second call with the same ids and tokens finds what the first one did.
// Make one with [New], one for each process. It is safe for concurrent use and needs no Close.
type Queue struct {
	store     store.Store
	observers []Observer
	newID     func() string
	limits    Limits
	clock     *clock
	memory    memory
}

// New checks the config and makes a Queue.
func New(cfg Config) (*Queue, error) {
	if cfg.Store == nil {
		return nil, errors.New("store is nil; open one of the packages in store")
	}
	for name, n := range map[string]int{"Depth": cfg.Depth, "Request": cfg.RequestBytes, "Commit": cfg.CommitBytes} {
		if n < 0 {
			return nil, fmt.Errorf("%s is negative", name)
		}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = NewID
	}
	return &Queue{
		store: cfg.Store, observers: cfg.Observers, newID: cfg.NewID, clock: newClock(cfg),
		limits: Limits{
			Skew: max(cmp.Or(cfg.Skew, defaultSkew), 0), Depth: cmp.Or(cfg.Depth, defaultDepth),
			Request: cmp.Or(cfg.RequestBytes, defaultRequestBytes), Commit: cmp.Or(cfg.CommitBytes, defaultCommitBytes),
		},
	}, nil
}

// Within returns the queue over another view of the same store, which shares clock, limits and observers.
func (q *Queue) Within(s store.Store) *Queue {
	return &Queue{
		store: s, observers: q.observers, newID: q.newID, limits: q.limits, clock: q.clock,
	}
}

// NewID makes random ids that grow with time.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// Limits returns what the queue's rules go by.
func (q *Queue) Limits() Limits { return q.limits }

// Now returns the time of the latest reading of the store's clock, continued by the clock of this process. It has milliseconds, as stores
// do.
func (q *Queue) Now() time.Time { return milli(q.clock.now()) }

// Time is Now, after the store's clock was read if need be.
func (q *Queue) Time(ctx context.Context) (time.Time, error) {
	err := q.clock.sync(ctx)
	return q.Now(), err
}

func milli(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// attempts is how often a transition is tried when other processes come between.
const attempts = 100

// change executes an operation by a rule, and passes it to the observers. The dispatch that it names is read; without a thread it is that of
// the dispatch. It reports whether there was something to do: not if there is no such dispatch, or the rule found nothing.
func (q *Queue) change(ctx context.Context, o Operation, n need, rule func(*turn) (bool, error)) (did bool, err error) {
	ctx, end := q.Begin(ctx, o)
	defer func() { end(!did, err) }()
	if o.Thread == "" {
		var found bool
		if o.Thread, found, err = q.find(ctx, indexDispatch, o.Dispatch); err != nil || !found {
			return false, err
		}
	}
	n.dispatches = append(n.dispatches, o.Dispatch)
	err = q.transition(ctx, o.Thread, n, func(t *turn) (err error) {
		did, err = rule(t)
		return err
	})
	return did && err == nil, err
}

// transition reads what a rule needs, applies the rule and writes what it changed, all or nothing. A rule may be applied several times, to
// newer states; the last one counts. Nothing is written after an error of the rule. It begins with what is known of the thread, and
// leaves there what it made of it.
func (q *Queue) transition(ctx context.Context, thread string, n need, rule func(*turn) error) error {
	now, err := q.Time(ctx)
	if err != nil {
		return wrap("thread", thread, err)
	}
	known := cmp.Or(n.known, q.memory.get(thread))
	for range attempts {
		if err := context.Cause(ctx); err != nil {
			return wrap("thread", thread, err)
		}
		v, t := known.view(thread), q.turn(thread)
		t.now = now
		err := v.load(ctx, q.store, n, t)
		if err == nil {
			t.length = t.thread.Messages
			err = rule(t)
		}
		written := err == nil && t.changed
		if written {
			err = q.write(ctx, v, t.batch(v.revision))
		}
		switch {
		case errors.Is(err, errMoved), written && errors.Is(err, store.ErrConflict):
			// Also when an answer was lost before: the rule finds what it did, by id and token.
		case v.guessed && (!written || errors.Is(err, store.ErrExists)):
			// What was seen may be old: refusals, and decisions to change nothing, count only after a read.
		case err != nil:
			return wrap("thread", thread, translated(err))
		default:
			known.set(v)
			q.ended(ctx, t)
			return wrap("thread", thread, t.stale)
		}
		known.set(nil)
	}
	return wrap("thread", thread, fmt.Errorf("%w: other processes came between %d times", ErrConflict, attempts))
}

// Held returns the record of a thread that this process has claimed as this process saw it last, for what the store checks again.
func (q *Queue) Held(thread string) Thread {
	t := Thread{ID: thread}
	_ = q.memory.get(thread).view(thread).decode(cellID{kindThread, ""}, &t)
	return t
}

// write applies a batch, once, also if the store's answer is lost and comes later.
func (q *Queue) write(ctx context.Context, v *view, b *store.Batch) error {
	revision, err := store.ApplySurely(ctx, q.store, *b)
	if err == nil {
		v.wrote(b, revision)
	}
	return err
}

// translated gives errors of the store the names that the queue has for them.
func translated(err error) error {
	for known, ours := range map[error]error{store.ErrExists: ErrExists, store.ErrInvalid: ErrInvalid} {
		if errors.Is(err, known) {
			return fmt.Errorf("%w: %w", ours, err)
		}
	}
	return err
}
