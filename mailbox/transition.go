package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/store"
)

// rankStep is by how much a step of priority moves a thread among those that are due.
const rankStep = 250 * time.Millisecond

// queue has the transitions of dispatches, and the listings. Each transition is atomic, and a second one with the same ids and tokens finds
// what the first one did.
//
// A rule is a pure function of a turn: the state of a thread, the time and what is written. A transition reads the cells that its rule needs,
// applies the rule, and writes the cells that it changed as one batch under the revision that was read: all or nothing. When another process
// came between, it starts again. A batch whose answer was lost is applied once, see [store.ApplySurely].
type queue struct {
	bounds

	store     store.Store
	observers []Observer
	newID     func() string
	clock     *clock
	memory    memory
}

func newQueue(c *Config) *queue {
	return &queue{
		store: c.Store, observers: c.Observers, newID: c.NewID, clock: newClock(c),
		bounds: bounds{skew: max(c.Lease.Skew, 0), depth: c.Limits.Depth, request: c.Limits.Request, commit: c.Limits.Commit},
	}
}

// within returns the queue over another view of the same store, which shares clock, limits and observers.
func (q *queue) within(s store.Store) *queue {
	return &queue{store: s, observers: q.observers, newID: q.newID, bounds: q.bounds, clock: q.clock}
}

// newID makes random ids that grow with time.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// now returns the time of the latest reading of the store's clock, continued by the clock of this process. It has milliseconds, as stores
// do.
func (q *queue) now() time.Time { return milli(q.clock.now()) }

// readTime is now, after the store's clock was read if need be.
func (q *queue) readTime(ctx context.Context) (time.Time, error) {
	err := q.clock.sync(ctx)
	return q.now(), err
}

func milli(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// attempts is how often a transition is tried when other processes come between.
const attempts = 100

// change executes an operation by a rule, and passes it to the observers. The dispatch that it names is read; without a thread it is that of
// the dispatch. It reports whether there was something to do: not if there is no such dispatch, or the rule found nothing.
func (q *queue) change(ctx context.Context, o Operation, n need, rule func(*turn) (bool, error)) (did bool, err error) {
	ctx, end := q.observe(ctx, o)
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
func (q *queue) transition(ctx context.Context, thread string, n need, rule func(*turn) error) error {
	now, err := q.readTime(ctx)
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
			q.reportEnds(ctx, t)
			return wrap("thread", thread, t.stale)
		}
		known.set(nil)
	}
	return wrap("thread", thread, fmt.Errorf("%w: other processes came between %d times", ErrConflict, attempts))
}

// seenThread returns the record of a thread as this process saw it last, for what the store checks again. One that it does not know it reads.
func (q *queue) seenThread(ctx context.Context, thread string) (t Thread) {
	if s := q.memory.get(thread); s != nil && s.view(thread).decode(cellID{kindThread, ""}, &t) == nil && t.ID != "" {
		return t
	}
	t, _, _ = q.record(ctx, thread)
	return t
}

// write applies a batch, once, also if the store's answer is lost and comes later.
func (q *queue) write(ctx context.Context, v *view, b *store.Batch) error {
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

// hold names a claim, as its holder does.
type hold struct{ Thread, Dispatch, Token string }

// state is a dispatch as a transition left it, with its run and its thread, and the claim if the thread is claimed for it.
type state struct {
	Dispatch Dispatch
	Claim    *Claim
	Run      Run
	Thread   Thread
	// Repeated is set when what was to be queued was there already.
	Repeated bool
	// First is set when the claim is the first one of the dispatch.
	First bool
}

// Holds reports whether the dispatch has been claimed with the token and still is.
func (s state) Holds(token string) bool {
	return s.Claim != nil && s.Claim.Token == token && s.Claim.Dispatch == s.Dispatch.ID
}

// hold is the claim of a dispatch as its holder names it.
func (s state) hold() hold {
	return hold{Thread: s.Dispatch.Thread, Dispatch: s.Dispatch.ID, Token: s.Dispatch.Token}
}

// state describes a dispatch after what was put.
func (t *turn) state(id string) state {
	d := t.dispatches[id]
	s := state{Dispatch: d, Run: t.runs[d.RunID], Thread: t.thread, First: id != "" && id == t.first}
	if c := t.thread.Claim; c != nil {
		own := *c
		s.Thread.Claim = &own
		if c.Dispatch == id {
			s.Claim = &own
		}
	}
	return s
}
