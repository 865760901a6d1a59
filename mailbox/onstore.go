package mailbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// Records keeps the mailbox's threads in a store.Store, each in the store's thread of its name. It implements [Store] with [Live], [Signals],
// [EventLog] and [Clock]. Make one with [On], one for each process: it remembers what the process wrote last, so that the next transition
// of a thread needs no read. It is safe for concurrent use and needs no Close; the store is closed by the caller.
type Records struct {
	store  store.Store
	memory *memory
	lines  lines
	bells  bells
}

var (
	_ Store    = (*Records)(nil)
	_ Live     = (*Records)(nil)
	_ Signals  = (*Records)(nil)
	_ EventLog = (*Records)(nil)
	_ Clock    = (*Records)(nil)
)

// On returns the mailbox's view of a store.
func On(s store.Store) *Records {
	return &Records{store: s, memory: newMemory(), lines: lines{open: map[Target]*line{}}, bells: newBells()}
}

// updateAttempts is how often an update is tried when other writers come between.
const updateAttempts = 100

// errMoved is a thread that another process changed while it was read.
var errMoved = errors.New("the thread changed while it was read")

// Update implements [Store].
func (r *Records) Update(ctx context.Context, thread string, need Need, decide func(State) (Change, error)) error {
	remembered := !need.Lenient
	for range updateAttempts {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		v := r.view(thread, remembered)
		done, err := r.try(ctx, v, need, decide)
		switch {
		case errors.Is(err, errMoved), errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrOutcomeUnknown):
		case !v.guessed: // everything was read
			return translated(err)
		case done && err == nil:
			return nil
		case done && !errors.Is(err, store.ErrExists):
			return translated(err)
		}
		// What was remembered may be old: refusals, and decisions to change nothing, count only after a read.
		r.memory.forget(thread)
		remembered = false
	}
	return fmt.Errorf("mailbox: thread %.80q: %w: other processes came between %d times", thread, ErrConflict, updateAttempts)
}

// try makes one attempt. Done reports whether a batch was applied, or may have been.
func (r *Records) try(ctx context.Context, v *view, need Need, decide func(State) (Change, error)) (done bool, err error) {
	state, err := v.load(ctx, need)
	if err != nil {
		return false, err
	}
	change, err := decide(state)
	if err != nil || change.Head == nil {
		return false, err
	}
	b, err := v.batch(ctx, change)
	if err != nil {
		return false, err
	}
	var gone []string
	if change.Drop {
		if gone, err = r.idsOf(ctx, v.thread); err != nil {
			return false, err
		}
	}
	revision, err := store.ApplySurely(ctx, r.store, *b)
	if err != nil {
		r.memory.forget(v.thread)
		return true, err
	}
	r.memory.wrote(b, revision)
	r.rang(v.thread, change)
	return true, r.dropEvents(ctx, gone...)
}

// Load implements [Store].
func (r *Records) Load(ctx context.Context, thread string, need Need) (State, error) {
	for range updateAttempts {
		state, err := r.view(thread, false).load(ctx, need)
		if !errors.Is(err, errMoved) {
			return state, err
		}
	}
	return State{}, fmt.Errorf("mailbox: thread %.80q: %w %d times", thread, errMoved, updateAttempts)
}

// Recall returns the head of a thread as this process wrote or read it last.
func (r *Records) Recall(thread string) (Head, bool) {
	v := r.view(thread, true)
	cells, ok := r.memory.cells(thread, v.revision, store.One(kindHead, ""))
	if !v.started || !ok {
		return Head{}, false
	}
	v.add(store.One(kindHead, ""), cells)
	h, err := v.head()
	return h, err == nil
}

// translated gives errors of the store the names that the mailbox has for them.
func translated(err error) error {
	switch {
	case errors.Is(err, store.ErrExists) && !errors.Is(err, ErrExists):
		return fmt.Errorf("%w: %w", ErrExists, err)
	case errors.Is(err, store.ErrInvalid) && !errors.Is(err, ErrInvalid):
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	default:
		return err
	}
}

// Time implements [Clock]: the store's clock, or that of the process if the store has none.
func (r *Records) Time(ctx context.Context) (time.Time, error) {
	if c, ok := r.store.(store.Clock); ok {
		return c.Time(ctx)
	}
	return time.Now(), nil
}

// AppendEvents implements [EventLog].
func (r *Records) AppendEvents(ctx context.Context, list ...EventBatch) (refused []string, err error) {
	e, ok := r.store.(store.Events)
	if !ok {
		return nil, nil
	}
	return e.AppendEvents(ctx, list...)
}

// ReadEvents implements [EventLog].
func (r *Records) ReadEvents(ctx context.Context, dispatch string, after uint64, limit int, wait time.Duration) ([]EventBatch, error) {
	e, ok := r.store.(store.Events)
	if !ok {
		return nil, nil
	}
	return e.ReadEvents(ctx, dispatch, after, limit, wait)
}

// DropEvents implements [EventLog].
func (r *Records) DropEvents(ctx context.Context, dispatches ...string) error {
	return r.dropEvents(ctx, dispatches...)
}

// PurgeEvents implements [EventLog].
func (r *Records) PurgeEvents(ctx context.Context, before time.Time) error {
	if e, ok := r.store.(store.Events); ok {
		return e.PurgeEvents(ctx, before)
	}
	return nil
}

// view is a thread as one transition sees it: cells of one revision, read bit by bit.
type view struct {
	records  *Records
	thread   string
	revision uint64
	// started is set when the revision is known, guessed when it was remembered and nothing was read.
	started, guessed bool
	cells            map[cellID]store.Cell
	// length is that of the log, if it was read: others than the mailbox may have written to it, also before there was a head.
	length int
	// read has the ranges that cells has all of.
	read []store.Range
}

// view begins to read a thread. With remembered, what the process wrote last counts, unless it turns out to be old.
func (r *Records) view(thread string, remembered bool) *view {
	v := &view{records: r, thread: thread, cells: map[cellID]store.Cell{}}
	if remembered {
		v.revision, v.started = r.memory.revision(thread)
		v.guessed = v.started
	}
	return v
}

// want reads ranges of cells.
func (v *view) want(ctx context.Context, ranges ...store.Range) error {
	var missing []store.Range
	for _, q := range ranges {
		if slices.Contains(v.read, q) {
			continue
		}
		if v.guessed {
			if cells, ok := v.records.memory.cells(v.thread, v.revision, q); ok {
				v.add(q, cells)
				continue
			}
		}
		missing = append(missing, q)
	}
	if len(missing) == 0 && v.started {
		return nil
	}
	query := store.Query{Cells: missing}
	head := slices.Contains(missing, store.One(kindHead, ""))
	if head {
		query.Entries = []store.Span{{Log: kindMessage}}
	}
	s, err := v.records.store.Read(ctx, v.thread, query)
	if err != nil {
		return fmt.Errorf("mailbox: thread %.80q: %w", v.thread, err)
	}
	if v.started && s.Revision != v.revision {
		return errMoved
	}
	v.revision, v.started, v.guessed = s.Revision, true, false
	if head {
		v.length = int(s.Last[kindMessage]) //nolint:gosec // a count
	}
	v.records.memory.learn(v.thread, s.Revision, missing, s.Cells)
	for _, q := range missing {
		v.add(q, s.Cells)
	}
	return nil
}

// add takes the cells of a range, of those that were read.
func (v *view) add(q store.Range, cells []store.Cell) {
	v.read = append(v.read, q)
	for _, c := range cells {
		if c.Kind == q.Kind && q.Contains(c.Key) {
			v.cells[cellID{c.Kind, c.Key}] = c
		}
	}
}
