package mailbox

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// entry is a request as it is queued.
type entry struct {
	Request

	// ID is that of the dispatch, Payload the request as it is kept, and Digest distinguishes requests under one id.
	ID, Digest string
	Payload    []byte
	// Claim asks for the thread at once: either it is claimed for the entry, or nothing is queued. Offer is a claim, too, and the entry is
	// queued if it cannot be made now, or something else is queued.
	Claim, Offer *claimRequest
	// Interrupt is the id of the interrupt that reserved the thread for the claim.
	Interrupt string
	// OwnID and OwnRun are set if ID and NewRun were made at random.
	OwnID, OwnRun bool
	// Unread lets the entry be queued without a read of a thread that this process does not know: it is new, most likely, and the store
	// refuses the entry if it is not.
	Unread bool
}

// maxYear is the last one that every store can keep.
const maxYear = 9999

// Validate refuses an entry that no thread accepts.
func (e *entry) Validate() error {
	if e.ID == "" || e.Thread == "" {
		return fmt.Errorf("%w: an entry needs an id and a thread", ErrInvalid)
	}
	if year := e.At.Year(); year > maxYear {
		return fmt.Errorf("%w: it is to be due in the year %d; the last one is %d", ErrInvalid, year, maxYear)
	}
	for name, id := range map[string]string{
		"dispatch id": e.ID, "thread": e.Thread, "tenant": e.Tenant, "run id": e.Run, "new run id": e.NewRun, "dedupe key": e.Dedupe,
		"agent": e.Agent, "parent": e.Parent, "parent thread": e.ParentThreadID, "origin": e.Origin,
	} {
		if err := checkID(name, id); err != nil {
			return err
		}
	}
	return nil
}

// enqueueEntry queues an entry. The same entry again gives what became of it.
func (q *queue) enqueueEntry(ctx context.Context, e entry) (s state, err error) {
	ctx, end := q.observe(ctx, Operation{Name: "enqueue", Thread: e.Thread, Dispatch: e.ID})
	defer func() { end(false, err) }()
	if err := cmp.Or(e.Validate(), q.fitsRequest(len(e.Payload)), q.chosen(ctx, &e)); err != nil {
		return state{}, wrap("entry", e.ID, err)
	}
	e.At = latest(milli(e.At), q.now())
	known := q.memory.get(e.Thread)
	switch {
	case known == nil && e.Unread:
		known = unread(e.Thread)
	case known == nil:
		known = new(seen)
	}
	if e.OwnID {
		known.lacks(store.One(kindDispatch, e.ID))
	}
	if e.OwnRun {
		known.lacks(store.One(kindRun, e.NewRun))
	}
	n := need{dispatches: []string{e.ID}, dedupe: e.Dedupe, runs: []string{e.Run, e.NewRun}, known: known}
	err = q.transition(ctx, e.Thread, n, func(t *turn) (err error) {
		s, err = enqueue(t, &e)
		return err
	})
	if err != nil {
		return state{}, err
	}
	q.memory.keep(e.Thread, known)
	return s, nil
}

// chosen refuses ids that a caller chose and another thread has: the store compares them only with others that were chosen.
func (q *queue) chosen(ctx context.Context, e *entry) error {
	for _, c := range []struct {
		kind, id string
		own      bool
	}{{indexDispatch, e.ID, e.OwnID}, {indexRun, e.Run, false}, {indexRun, e.NewRun, e.OwnRun}} {
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

// enqueue queues an entry, once for each id. With a claim it is claimed in the same turn, or not queued at all.
func enqueue(t *turn, e *entry) (state, error) {
	if d, ok := t.dispatches[e.ID]; ok {
		return t.again(d, e)
	}
	if err := t.admit(e); err != nil {
		return state{}, err
	}
	run, err := t.runFor(e)
	if err != nil {
		return state{}, err
	}
	if t.thread.Tenant == "" {
		t.thread.Tenant = e.Tenant
	}
	if t.thread.Seq == 0 && e.ParentThreadID != e.Thread {
		t.thread.Parent = e.ParentThreadID
	}
	if t.thread.CreatedAt.IsZero() {
		t.thread.CreatedAt = t.now
	}
	t.thread.Seq++
	d := Dispatch{
		ID: e.ID, Thread: e.Thread, RunID: run.ID, Seq: t.thread.Seq, Priority: uint8(int(e.Priority) + int(priorityDefault)), Epoch: t.thread.Epoch, Dedupe: e.Dedupe, //nolint:gosec // from 0 to 255
		Origin: e.Origin, Status: Queued, AvailableAt: e.At, MaxAttempts: max(e.MaxAttempts, 1),
		CreatedAt: t.now, Request: e.Payload, Digest: e.Digest, Own: e.OwnID,
	}
	t.putRun(run)
	t.put(d)
	switch {
	case e.Claim != nil:
		t.claim(d, *e.Claim)
	case e.Offer != nil && t.idles(d):
		t.claim(d, *e.Offer)
	default:
		t.sooner(d)
	}
	return t.state(d.ID), nil
}

// idles reports whether the thread can be claimed for a dispatch that was just queued, and nothing else is queued.
func (t *turn) idles(d Dispatch) bool {
	return t.thread.Queued == 1 && t.thread.Claim == nil && t.thread.PausedAt.IsZero() && !t.now.Before(t.thread.ReservedUntil) &&
		!d.AvailableAt.After(t.now)
}

// again answers for an entry that is there already.
func (t *turn) again(d Dispatch, e *entry) (state, error) {
	if err := t.thread.admits(e.Tenant); err != nil {
		return state{}, err
	}
	if d.Digest != e.Digest || (e.Run != "" && e.Run != d.RunID) {
		return state{}, fmt.Errorf("%w: dispatch %.80q is there, and is another request", ErrExists, d.ID)
	}
	if e.Claim != nil && d.Token != e.Claim.Token {
		return state{}, fmt.Errorf("%w: dispatch %.80q", ErrExists, d.ID)
	}
	s := t.state(d.ID)
	s.Repeated = true
	return s, nil
}

// admit refuses an entry that the thread does not accept now.
func (t *turn) admit(e *entry) error {
	if err := t.thread.admits(e.Tenant); err != nil {
		return err
	}
	switch {
	case e.Claim != nil && !t.thread.PausedAt.IsZero():
		return fmt.Errorf("%w since %s; resume it, or queue the request in the background", ErrPaused, t.thread.PausedAt.Format(time.RFC3339))
	case t.duplicate != "":
		return fmt.Errorf("%w: dedupe_key=%.80s", ErrExists, e.Dedupe)
	case e.Claim != nil && (t.thread.Claim != nil || t.now.Before(t.thread.ReservedUntil) && t.thread.Interrupt != e.Interrupt):
		return ErrBusy
	case e.Claim == nil && t.thread.Queued >= t.depth:
		return fmt.Errorf("%w: thread %.80q has %d queued dispatches; wait or cancel some", ErrFull, e.Thread, t.thread.Queued)
	}
	return nil
}

// admits refuses a tenant that does not own the thread.
func (t *Thread) admits(tenant string) error {
	if t.Seq > 0 && t.Tenant != tenant {
		return fmt.Errorf("%w: thread %.80q belongs to another tenant", ErrInvalid, t.ID)
	}
	return nil
}

// runFor is the run that an entry is for.
func (t *turn) runFor(e *entry) (Run, error) {
	id := e.Run
	if id == "" && t.thread.Open.takes(e.decides()) {
		id = t.thread.Open.ID
	}
	if r, ok := t.runs[id]; ok {
		if r.Status == RunDone || (r.Status == RunRunning || r.Ref().Postponed()) && !e.decides() {
			return Run{}, fmt.Errorf("%w: run_id '%.80s' is not open for dispatch", ErrInvalid, id)
		}
		r.Input = append(r.Input, e.inputs()...)
		return r, nil
	}
	if id == "" {
		id = e.NewRun
	}
	if id == "" {
		return Run{}, fmt.Errorf("%w: an entry needs the id of a run", ErrInvalid)
	}
	if _, exists := t.runs[id]; exists {
		return Run{}, fmt.Errorf("%w: run_id '%.80s'", ErrExists, id)
	}
	agent := e.Agent
	if agent == "" {
		agent = t.thread.Latest.Agent
	}
	return Run{
		ID: id, Thread: e.Thread, Agent: agent, Parent: e.Parent, Result: Result{Status: RunCreated}, Input: e.inputs(),
		Own: e.OwnRun && id == e.NewRun && id != e.Run, RunTimes: RunTimes{CreatedAt: t.now},
	}, nil
}

// sooner makes the thread due for a new dispatch, if it was not before.
func (t *turn) sooner(d Dispatch) {
	rank := rankOf(d.AvailableAt, d.Priority)
	if !t.thread.DueAt.IsZero() {
		rank = min(rank, t.thread.Rank)
	}
	t.notify = true
	t.write(earliest(t.thread.DueAt, d.AvailableAt), rank)
}
