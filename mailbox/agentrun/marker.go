package agentrun

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
	threads "github.com/mortise-dev/mortise/thread"
)

// Compactions returns the compaction store of threads whose runs r executes. A marker that is swapped in during a run, and events of
// compactions then, are written with the run's next checkpoint, in one batch. All else is written at once. The threads are those of the
// store of the mailbox.
func (r *Runtime) Compactions(t *threads.Threads) compaction.Store { return &compactions{r, t} }

type compactions struct {
	runtime *Runtime
	threads *threads.Threads
}

// waiting is the revision of a compaction state that is not written yet. No store has it: once the state is written, the next Swap is a
// conflict, and the compactor reads the state with its revision.
const waiting = math.MaxUint64

// unwritten is what happened to the compactions of a run's thread since its last checkpoint.
type unwritten struct {
	// state has a marker that is not written, nil if there is none, and replaces the state of revision base.
	state *compaction.State
	base  uint64
	// conflict is set when a state was left out since another process had changed it.
	conflict bool
	events   []compaction.Event
	// threads writes what no checkpoint follows, nil as long as there is nothing.
	threads *threads.Threads
}

// callTime bounds the commit of a Swap that follows one with a marker: Swap has no context.
const callTime = 5 * time.Second

// keeper returns that of the run that a thread has here, locked, nil without one or once that accepts nothing more.
func (c *compactions) keeper(thread string) *keeper {
	a := c.runtime.ofThread(thread)
	if a == nil {
		return nil
	}
	a.keep.mu.Lock()
	if a.keep.closed {
		a.keep.mu.Unlock()
		return nil
	}
	a.keep.compaction.threads = c.threads
	return a.keep
}

// Load implements compaction.Store.
func (c *compactions) Load(thread string) (compaction.State, uint64, error) {
	if k := c.keeper(thread); k != nil {
		defer k.mu.Unlock()
		if s := k.compaction.state; s != nil {
			return *s, waiting, nil
		}
	}
	return c.threads.Load(thread)
}

// Swap implements compaction.Store. It writes a state at once, unless it has a new marker: that waits for the next checkpoint. A state
// that follows one with a marker is written with the latest checkpoint.
func (c *compactions) Swap(thread string, rev uint64, s compaction.State) (uint64, error) {
	k := c.keeper(thread)
	if k == nil {
		return c.threads.Swap(thread, rev, s)
	}
	defer k.mu.Unlock()
	u := &k.compaction
	switch {
	case u.state != nil && rev != waiting:
		return 0, compaction.ErrConflict
	case u.state != nil:
		before := u.state
		u.state, u.conflict = &s, false
		ctx, cancel := context.WithTimeout(background(), callTime)
		defer cancel()
		if err := k.extra(ctx, k.accepted, k.taken); err != nil {
			u.state = before
			return 0, err
		}
		if u.conflict {
			return 0, compaction.ErrConflict
		}
		return waiting, nil
	}
	old, now, err := c.threads.Load(thread)
	switch {
	case err != nil:
		return 0, err
	case now != rev:
		return 0, compaction.ErrConflict
	case s.Total > old.Total:
		u.state, u.base = &s, rev
		return waiting, nil
	}
	next, err := c.threads.Commit(background(), thread, threads.Commit{State: &s, Base: rev, Events: u.events})
	if err == nil {
		u.events = nil
	}
	return next, err
}

// Record implements compaction.Store. An event waits for the next commit, unless the run is over.
func (c *compactions) Record(e compaction.Event) error {
	k := c.keeper(e.Thread)
	if k == nil {
		return c.threads.Record(e)
	}
	defer k.mu.Unlock()
	k.compaction.events = append(k.compaction.events, e)
	return nil
}

// write commits with what happened to compactions since the last commit. A marker is left out whose thread got another compaction state
// meanwhile: the compactor finds out at its next Swap. The caller holds the lock.
func (k *keeper) write(ctx context.Context, c mailbox.Commit) error {
	u := &k.compaction
	c.More.State, c.More.Base, c.More.Events = u.state, u.base, u.events
	err := k.job.Commit(ctx, c)
	if errors.Is(err, compaction.ErrConflict) {
		u.state, u.conflict, c.More.State = nil, true, nil
		err = k.job.Commit(ctx, c)
	}
	k.failed = err != nil
	if err != nil {
		return err
	}
	u.state, u.events = nil, nil
	return nil
}

// rest writes what no checkpoint follows. After a failure it writes nothing: if that did not land, the result of the compaction is still in
// the store, and the next run swaps it in. The caller holds the lock.
func (k *keeper) rest(ctx context.Context) {
	u := &k.compaction
	if c := (threads.Commit{State: u.state, Base: u.base, Events: u.events}); !k.failed && (c.State != nil || len(c.Events) > 0) {
		_, _ = u.threads.Commit(ctx, k.job.Dispatch.Thread, c) // the same holds of this one
	}
	u.state, u.events = nil, nil
}

// background is the context of a compaction.Store, whose calls have none.
func background() context.Context { return context.Background() } //nolint:forbidigo // its callers have none

// delivery is an agent.Delivery whose notifications are cells of a store, as that of package inbox.
type delivery interface {
	Store() store.Store
	Cells(keys ...string) []store.Range
	Deleted(ctx context.Context, keys ...string)
}
