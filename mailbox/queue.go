package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Defaults of [QueueConfig].
const (
	DefaultDepth    = 1000
	DefaultSkew     = time.Second
	DefaultRankStep = 250 * time.Millisecond
	DefaultTries    = 3
)

// maxID bounds ids, keys and owners, in bytes.
const maxID = 256

// QueueConfig makes a [Queue]. Zero fields mean their defaults.
type QueueConfig struct {
	// Store keeps everything. Required. Whoever made it closes it.
	Store Store
	// Depth is how many dispatches of a thread may be queued.
	Depth int
	// Skew is how long a lease is left alone after its end, since clocks differ; none
	// if it is negative.
	Skew time.Duration
	// RankStep is how much earlier a thread comes for each step of priority.
	RankStep time.Duration
	// Tries is how often a transition is asked for when the store fails.
	Tries int
	// Observers are told of each transition.
	Observers []Observer
	Now       func() time.Time
	NewID     func() string
}

// Queue has the transitions of dispatches. Each is atomic, and a second call
// with the same ids and tokens finds what the first one did.
type Queue struct {
	cfg    QueueConfig
	limits limits
}

// NewQueue checks the config and makes a Queue.
func NewQueue(cfg QueueConfig) (*Queue, error) {
	switch {
	case cfg.Store == nil:
		return nil, errors.New("mailbox: QueueConfig.Store is nil; open one of the packages in store")
	case cfg.Depth < 0:
		return nil, errors.New("mailbox: QueueConfig.Depth is negative")
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
	return &Queue{cfg: cfg, limits: limits{
		skew: max(cmp.Or(cfg.Skew, DefaultSkew), 0), depth: cmp.Or(cfg.Depth, DefaultDepth), rankStep: cmp.Or(cfg.RankStep, DefaultRankStep),
	}}, nil
}

// newID makes ids that grow with time.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// now has milliseconds, as stores do.
func (q *Queue) now() time.Time { return q.cfg.Now().UTC().Truncate(time.Millisecond) }

// update asks for a transition until the store has answered. Rule puts its answer
// aside each time that it is called; the last one counts.
func (q *Queue) update(ctx context.Context, thread string, need Need, rule func(*turn) Change) error {
	return q.updateWith(ctx, thread, func() Need { return need }, rule)
}

// updateWith is update with a need that depends on the tries before.
func (q *Queue) updateWith(ctx context.Context, thread string, need func() Need, rule func(*turn) Change) error {
	now := q.now()
	var err error
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
	if err := e.validate(); err != nil {
		return Taken{}, wrap("entry", e.ID, err)
	}
	e.AvailableAt = e.AvailableAt.UTC().Truncate(time.Millisecond)
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
	s.RetryAt = s.RetryAt.UTC().Truncate(time.Millisecond)
	s.Result.WaitUntil = s.Result.WaitUntil.UTC().Truncate(time.Millisecond)
	s.Error, s.Result.Error = clip(s.Error), clip(s.Result.Error)
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
	var verdict error
	err = q.update(ctx, h.Thread, commitNeed(h), func(t *turn) (out Change) {
		out, verdict = commit(t, h, c)
		return out
	})
	return cmp.Or(err, wrap("commit of dispatch", h.Dispatch, verdict))
}

// Interrupt makes what a thread is claimed for stale, and supersedes what is queued
// for it.
func (q *Queue) Interrupt(ctx context.Context, thread string, i Interrupt) (Interruption, error) {
	ctx, end := q.begin(ctx, Operation{Name: OpInterrupt, Thread: thread})
	i.ID = cmp.Or(i.ID, q.cfg.NewID())
	var out Interruption
	again, tried := false, false
	err := q.updateWith(ctx, thread, func() Need {
		tried = tried || len(out.Superseded) > 0 // by a try that failed
		return interruptNeed()
	}, func(t *turn) (c Change) {
		c, out, again = interrupt(t, i)
		return c
	})
	if err == nil && again {
		out.Superseded, err = q.superseded(ctx, thread, out.Epoch, tried)
	}
	end(false, err)
	return out, err
}

// superseded lists what the interrupt superseded that began an epoch, as far as it is kept. When this process did that and was
// not told, observers have not heard of it.
func (q *Queue) superseded(ctx context.Context, thread string, epoch uint64, tell bool) (out []Dispatch, err error) {
	const page = 500
	query := DispatchQuery{Thread: thread, Statuses: []Status{Superseded}, Limit: page}
	for {
		list, err := q.Dispatches(ctx, query)
		if err != nil {
			return nil, err
		}
		for i := range list {
			// What was claimed then and was superseded later has an earlier epoch.
			if d := list[i]; d.Epoch == epoch && d.RunStatus == "" {
				out = append(out, d)
			}
		}
		if len(list) < page {
			break
		}
		query.After = list[page-1]
	}
	for i := 0; tell && i < len(out); i++ {
		for _, observer := range q.cfg.Observers {
			observer.Settled(ctx, Taken{Dispatch: out[i]})
		}
	}
	return out, nil
}

// Cancel ends a dispatch that is queued, and asks the holder of one that is claimed to
// stop: if it does not, the dispatch is cancelled when its lease is over. It says
// whether the dispatch is cancelled, or will be.
func (q *Queue) Cancel(ctx context.Context, id, why string) (taken Taken, ok bool, err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpCancel, Dispatch: id})
	defer func() { end(!ok, err) }()
	thread, found, err := q.find(ctx, KindDispatch, id)
	if err != nil || !found {
		return Taken{}, false, err
	}
	err = q.update(ctx, thread, Need{Dispatches: []string{id}, RunsOf: true}, func(t *turn) (out Change) {
		out, taken, ok = cancel(t, id, cmp.Or(why, "cancelled"))
		return out
	})
	return taken, ok && err == nil, err
}

// CancelRun ends a run that waits, and says whether it did.
func (q *Queue) CancelRun(ctx context.Context, thread, run, why string) (ok bool, err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpCancelRun, Thread: thread})
	defer func() { end(!ok, err) }()
	err = q.update(ctx, thread, Need{Runs: []string{run}}, func(t *turn) (out Change) {
		out, ok = cancelRun(t, run, why)
		return out
	})
	return ok && err == nil, err
}

// Expire takes a thread from a holder whose lease is over. It returns the dispatch, as
// it is now, or false.
func (q *Queue) Expire(ctx context.Context, thread string) (taken Taken, ok bool, err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpReclaim, Thread: thread})
	defer func() { end(!ok, err) }()
	need := Need{Claimed: true, Next: true, Now: q.now(), RunsOf: true}
	var now, tried Claim // a try that failed may have ended it
	err = q.updateWith(ctx, thread, func() Need {
		if tried = now; tried.Dispatch != "" {
			need.Dispatches = []string{tried.Dispatch}
		}
		return need
	}, func(t *turn) (out Change) {
		var id string
		if out, id = expire(t); id != "" {
			now = *t.s.Head.Claim
		} else {
			id = t.expired(tried)
		}
		taken, ok = t.taken(id), id != ""
		return out
	})
	return taken, ok && err == nil, err
}

// Lapse ends the run of a thread whose time to wait is over. It returns the run, or nothing.
func (q *Queue) Lapse(ctx context.Context, thread string) (run string, err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpLapse, Thread: thread})
	defer func() { end(run == "", err) }()
	need := Need{RunsOf: true, Next: true, Now: q.now()}
	now, tried := "", "" // a try that failed may have ended it
	err = q.updateWith(ctx, thread, func() Need {
		if tried = now; tried != "" {
			need.Runs = []string{tried}
		}
		return need
	}, func(t *turn) (out Change) {
		if out, run = lapse(t); run != "" {
			now = run
		} else if t.lapsed(tried) {
			run = tried
		}
		return out
	})
	return run, err
}

// Drop forgets a thread with all that is in it. It is [ErrBusy] while the thread is
// claimed: interrupt it first.
func (q *Queue) Drop(ctx context.Context, thread string) (err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpDrop, Thread: thread})
	defer func() { end(false, err) }()
	var verdict error
	err = q.update(ctx, thread, Need{}, func(t *turn) (out Change) {
		out, verdict = drop(t)
		return out
	})
	return cmp.Or(err, verdict)
}

// Replay queues a dead letter again, for a new run of that id.
func (q *Queue) Replay(ctx context.Context, id, newRun string) (taken Taken, err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpReplay, Dispatch: id})
	defer func() { end(false, err) }()
	d, found, err := q.Dispatch(ctx, id)
	if err != nil || !found {
		return Taken{}, cmp.Or(err, wrap("dispatch", id, ErrNotFound))
	}
	var verdict error
	err = q.update(ctx, d.Thread, Need{Dispatches: []string{id}, Dedupe: d.Dedupe, RunsOf: true}, func(t *turn) (out Change) {
		out, taken, verdict = replay(t, id, newRun)
		return out
	})
	return taken, cmp.Or(err, verdict)
}

// Discard gives a dead letter up. It is dropped with other old dispatches.
func (q *Queue) Discard(ctx context.Context, id string) (err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpDiscard, Dispatch: id})
	defer func() { end(false, err) }()
	thread, found, err := q.find(ctx, KindDispatch, id)
	if err != nil || !found {
		return cmp.Or(err, wrap("dispatch", id, ErrNotFound))
	}
	var verdict error
	err = q.update(ctx, thread, Need{Dispatches: []string{id}}, func(t *turn) (out Change) {
		out, verdict = discard(t, id)
		return out
	})
	return cmp.Or(err, verdict)
}

// Dispatch returns a dispatch without its request, or false.
func (q *Queue) Dispatch(ctx context.Context, id string) (d Dispatch, ok bool, err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpLoadDispatch, Dispatch: id})
	defer func() { end(!ok, err) }()
	thread, found, err := q.find(ctx, KindDispatch, id)
	if err != nil || !found {
		return Dispatch{}, false, err
	}
	s, err := q.load(ctx, thread, Need{Dispatches: []string{id}})
	d, ok = s.Dispatches[id]
	return d, ok, err
}

// Run returns a run, or false.
func (q *Queue) Run(ctx context.Context, id string) (Run, bool, error) {
	thread, found, err := q.find(ctx, KindRun, id)
	if err != nil || !found {
		return Run{}, false, err
	}
	s, err := q.load(ctx, thread, Need{Runs: []string{id}})
	r, ok := s.Runs[id]
	return r, ok, err
}

// Head returns what a thread comes down to. One that was never used has an empty Head.
func (q *Queue) Head(ctx context.Context, thread string) (Head, error) {
	ctx, end := q.begin(ctx, Operation{Name: OpLoadThread, Thread: thread})
	s, err := q.load(ctx, thread, Need{})
	end(false, err)
	return s.Head, err
}

// Dispatches lists dispatches without their requests.
func (q *Queue) Dispatches(ctx context.Context, query DispatchQuery) ([]Dispatch, error) {
	list, err := q.cfg.Store.Dispatches(ctx, query)
	return list, wrap("dispatches of thread", query.Thread, err)
}

func (q *Queue) load(ctx context.Context, thread string, need Need) (State, error) {
	s, err := q.cfg.Store.Load(ctx, thread, need)
	return s, wrap("thread", thread, err)
}

func (q *Queue) find(ctx context.Context, kind Kind, id string) (string, bool, error) {
	if id == "" || !validID(id) {
		return "", false, nil // nothing was ever kept under it
	}
	thread, found, err := q.cfg.Store.Find(ctx, kind, id)
	return thread, found, wrap(string(kind), id, err)
}

func checkID(name, id string) error {
	if !validID(id) {
		return fmt.Errorf("%w: the %s must be UTF-8 without NUL, at most %d bytes", ErrInvalid, name, maxID)
	}
	return nil
}

func validID(id string) bool {
	return len(id) <= maxID && utf8.ValidString(id) && !strings.ContainsRune(id, 0)
}

// clip bounds a text that is kept with a record.
func clip(text string) string {
	const most = 4096
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
