package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Defaults of [QueueConfig].
const (
	DefaultDepth        = 1000
	DefaultRequestBytes = 8 << 20
	DefaultCommitBytes  = 16 << 20
	DefaultSkew         = time.Second
	DefaultRankStep     = 250 * time.Millisecond
	DefaultTries        = 3
)

// maxID bounds ids, keys and owners, in bytes.
const maxID = 256

// QueueConfig makes a [Queue]. Zero fields mean their defaults.
type QueueConfig struct {
	// Store keeps everything. Required. Whoever made it closes it.
	Store Store
	// Depth is how many dispatches of a thread may be queued.
	Depth int
	// RequestBytes is how large a request may be, as it is kept: what is bytes in it takes a third more there.
	// CommitBytes is how much an execution may write at once: messages, the image, the run's data and result. What is larger is
	// [ErrTooLarge].
	RequestBytes, CommitBytes int
	// Skew is how long a lease is left alone after its end, since clocks differ; none
	// if it is negative: then Now is the clock of all processes, and that of the store, see [Clock], is not read.
	Skew time.Duration
	// RankStep is how much earlier a thread comes for each step of priority.
	RankStep time.Duration
	// Tries is how often a transition is asked for when the store fails.
	Tries int
	// Observers are told of each transition.
	Observers []Observer
	// Now is the clock of this process; time.Now when nil. Where the store has a clock, see [Clock], that one counts.
	Now   func() time.Time
	NewID func() string
}

// Queue has the transitions of dispatches. Each is atomic, and a second call
// with the same ids and tokens finds what the first one did.
type Queue struct {
	cfg    QueueConfig
	limits limits
	clock  *clock
}

// NewQueue checks the config and makes a Queue.
func NewQueue(cfg QueueConfig) (*Queue, error) {
	switch {
	case cfg.Store == nil:
		return nil, errors.New("mailbox: QueueConfig.Store is nil; open one of the packages in store")
	case cfg.Depth < 0:
		return nil, errors.New("mailbox: QueueConfig.Depth is negative")
	case cfg.RequestBytes < 0:
		return nil, errors.New("mailbox: QueueConfig.RequestBytes is negative")
	case cfg.CommitBytes < 0:
		return nil, errors.New("mailbox: QueueConfig.CommitBytes is negative")
	case cfg.RankStep < 0:
		return nil, errors.New("mailbox: QueueConfig.RankStep is negative")
	case cfg.Tries < 0:
		return nil, errors.New("mailbox: QueueConfig.Tries is negative")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = newID
	}
	cfg.Tries = cmp.Or(cfg.Tries, DefaultTries)
	return &Queue{cfg: cfg, clock: newClock(cfg), limits: limits{
		skew: max(cmp.Or(cfg.Skew, DefaultSkew), 0), depth: cmp.Or(cfg.Depth, DefaultDepth), rankStep: cmp.Or(cfg.RankStep, DefaultRankStep),
		request: cmp.Or(cfg.RequestBytes, DefaultRequestBytes), commit: cmp.Or(cfg.CommitBytes, DefaultCommitBytes),
	}}, nil
}

// newID makes ids that grow with time.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// now has milliseconds, as stores do.
func (q *Queue) now() time.Time { return milli(q.clock.now()) }

// time is now, after the store's clock was read if need be.
func (q *Queue) time(ctx context.Context) (time.Time, error) {
	err := q.clock.sync(ctx)
	return q.now(), err
}

func milli(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// update asks for a transition until the store has answered. Rule puts its answer
// aside each time that it is called; the last one counts.
func (q *Queue) update(ctx context.Context, thread string, need Need, rule func(*turn) Change) error {
	return q.updateWith(ctx, thread, func() Need { return need }, rule)
}

// updateWith is update with a need that depends on the tries before.
func (q *Queue) updateWith(ctx context.Context, thread string, need func() Need, rule func(*turn) Change) error {
	now, err := q.time(ctx)
	if err != nil {
		return wrap("thread", thread, err)
	}
	var last, before *turn // before may have been made, and ended something
	for range q.cfg.Tries {
		if last != nil && len(last.ends) > 0 {
			before = last
		}
		err = q.cfg.Store.Update(ctx, thread, need(), func(s State) (Change, error) {
			last = newTurn(q.limits, s, now)
			return rule(last), nil
		})
		if err == nil {
			last.endedBefore(before)
			q.ended(ctx, last)
			return nil
		}
		if errors.Is(err, ErrExists) || errors.Is(err, ErrConflict) {
			return wrap("thread", thread, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return wrap("thread", thread, fmt.Errorf("%w: %w", ErrUnknownOutcome, err))
}

// Enqueue queues an entry. The same entry again gives what became of it.
func (q *Queue) Enqueue(ctx context.Context, e Entry) (taken Taken, err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpEnqueue, Thread: e.Thread, Dispatch: e.ID})
	defer func() { end(false, err) }()
	if err := cmp.Or(e.validate(), q.limits.fitsRequest(len(e.Request))); err != nil {
		return Taken{}, wrap("entry", e.ID, err)
	}
	if err := q.chosen(ctx, e); err != nil {
		return Taken{}, wrap("entry", e.ID, err)
	}
	e.AvailableAt = milli(e.AvailableAt)
	if now := q.now(); e.AvailableAt.Before(now) {
		e.AvailableAt = now
	}
	var verdict error
	err = q.update(ctx, e.Thread, e.need(), func(t *turn) (out Change) {
		out, taken, verdict = enqueue(t, e)
		return out
	})
	return taken, cmp.Or(err, wrap("entry", e.ID, verdict))
}

// chosen refuses ids that a caller chose and another thread has: the store compares them only with others that were chosen.
func (q *Queue) chosen(ctx context.Context, e Entry) error {
	for _, c := range []struct {
		kind Kind
		id   string
		own  bool
	}{{KindDispatch, e.ID, e.ownID}, {KindRun, e.Run, false}, {KindRun, e.NewRun, e.ownRun}} {
		if c.id == "" || c.own {
			continue
		}
		thread, found, err := q.find(ctx, c.kind, c.id)
		if err != nil {
			return err
		}
		if found && thread != e.Thread {
			return fmt.Errorf("%w: %s '%.80s' is in another thread", ErrExists, c.kind, c.id)
		}
	}
	return nil
}

// Claim claims a thread for the first dispatch in its queue that is due. It is false
// when there is none, or the thread is claimed.
func (q *Queue) Claim(ctx context.Context, thread string, r ClaimRequest) (Taken, bool, error) {
	ctx, end := q.begin(ctx, Operation{Name: OpClaim, Thread: thread})
	taken, ok, err := q.claim(ctx, thread, "", r)
	end(!ok, err)
	return taken, ok, err
}

// ClaimDispatch claims a thread for a dispatch, whether it is due or not. It is false when it is
// not queued, or the thread is claimed.
func (q *Queue) ClaimDispatch(ctx context.Context, id string, r ClaimRequest) (taken Taken, ok bool, err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpClaimDispatch, Dispatch: id})
	defer func() { end(!ok, err) }()
	thread, found, err := q.find(ctx, KindDispatch, id)
	if err != nil || !found {
		return Taken{}, false, err
	}
	return q.claim(ctx, thread, id, r)
}

func (q *Queue) claim(ctx context.Context, thread, id string, r ClaimRequest) (taken Taken, ok bool, err error) {
	if r.Token == "" || r.Lease <= 0 {
		return Taken{}, false, wrap("claim of thread", thread, fmt.Errorf("%w: a claim needs a token and a lease", ErrInvalid))
	}
	for more := true; more; {
		err = q.update(ctx, thread, claimNeed(id, q.now()), func(t *turn) (out Change) {
			var won string
			out, won, more = claimNext(t, id, r)
			taken, ok = t.taken(won), won != ""
			return out
		})
		if err != nil {
			return Taken{}, false, err
		}
	}
	return taken, ok, nil
}

// Extend moves the end of a lease to lease from now.
func (q *Queue) Extend(ctx context.Context, h Hold, lease time.Duration) (claim Claim, err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpRenew, Thread: h.Thread, Dispatch: h.Dispatch})
	defer func() { end(false, err) }()
	var verdict error
	err = q.update(ctx, h.Thread, Need{Dispatches: []string{h.Dispatch}}, func(t *turn) (out Change) {
		out, claim, verdict = extend(t, h, lease)
		return out
	})
	return claim, cmp.Or(err, wrap("lease of dispatch", h.Dispatch, verdict))
}

// Settle ends a claim.
func (q *Queue) Settle(ctx context.Context, h Hold, s Settlement) (taken Taken, err error) {
	ctx, end := q.begin(ctx, Operation{Name: s.Verdict.operation(), Thread: h.Thread, Dispatch: h.Dispatch})
	defer func() { end(false, err) }()
	s.RetryAt, s.Result = milli(s.RetryAt), s.Result.kept()
	s.Error, s.Result.Error = clip(s.Error), clip(s.Result.Error)
	if err := q.limits.fitsCommit(s.Result.bytes()); err != nil {
		return Taken{}, wrap("settlement of dispatch", h.Dispatch, err)
	}
	var verdict error
	err = q.update(ctx, h.Thread, settleNeed(h, q.now()), func(t *turn) (out Change) {
		out, taken, verdict = settle(t, h, s)
		return out
	})
	return taken, cmp.Or(err, wrap("settlement of dispatch", h.Dispatch, verdict))
}

// Commit writes for the holder of a claim.
func (q *Queue) Commit(ctx context.Context, h Hold, c Commit) (err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpCommit, Thread: h.Thread, Dispatch: h.Dispatch})
	defer func() { end(false, err) }()
	if err := q.limits.fitsCommit(c.bytes()); err != nil {
		return wrap("commit of dispatch", h.Dispatch, err)
	}
	c.Result = c.Result.kept()
	var verdict error
	err = q.update(ctx, h.Thread, commitNeed(h), func(t *turn) (out Change) {
		out, verdict = commit(t, h, c)
		return out
	})
	return cmp.Or(err, wrap("commit of dispatch", h.Dispatch, verdict))
}
