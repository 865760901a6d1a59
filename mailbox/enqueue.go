package mailbox

import (
	"fmt"
	"time"
)

// Entry is what is to be queued.
type Entry struct {
	// ID of the dispatch and Thread are required.
	ID     string
	Thread string
	Tenant string
	// Run is the run that goes on, or a new one of that id. Without it the thread's
	// waiting run goes on, and else NewRun is made.
	Run, NewRun string
	// Follow lets Run be under way: the entry is for what it comes to. Without it such a run is refused.
	Follow bool
	// Agent of a new run; that of the thread's latest run when empty.
	Agent  string
	Parent string
	// ParentThread is the thread above a new one.
	ParentThread string
	// Priority is as in [Dispatch]; 0 is the highest.
	Priority    uint8
	Dedupe      string
	Origin      string
	AvailableAt time.Time
	MaxAttempts int
	Request     []byte
	Digest      string
	// Input are the ids of the messages that it brings.
	Input []string
	// Claim asks for the thread at once: either it is claimed for the entry, or nothing is
	// queued.
	Claim *ClaimRequest
	// Interrupt is the id of the interrupt that reserved the thread for the claim.
	Interrupt string

	// ownID and ownRun are set if the mailbox made ID and NewRun at random.
	ownID, ownRun bool
}

// ClaimRequest is how somebody wants to hold a thread.
type ClaimRequest struct {
	// Token is new for each attempt to claim.
	Token string
	Owner string
	Lease time.Duration
	// Instance names the execution.
	Instance string
	// NewRun is the id of the run that a dispatch gets whose own has ended without it; Instance when empty.
	NewRun string
}

// maxYear is the last one that every store can keep.
const maxYear = 9999

func (e Entry) validate() error {
	if e.ID == "" || e.Thread == "" {
		return fmt.Errorf("%w: an entry needs an id and a thread", ErrInvalid)
	}
	if year := e.AvailableAt.Year(); year > maxYear {
		return fmt.Errorf("%w: it is to be due in the year %d; the last one is %d", ErrInvalid, year, maxYear)
	}
	for name, id := range map[string]string{
		"dispatch id": e.ID, "thread": e.Thread, "tenant": e.Tenant, "run id": e.Run, "new run id": e.NewRun, "dedupe key": e.Dedupe, "agent": e.Agent, "parent": e.Parent, "parent thread": e.ParentThread, "origin": e.Origin,
	} {
		if err := checkID(name, id); err != nil {
			return err
		}
	}
	return nil
}

func (e Entry) need() Need {
	n := Need{Dispatches: []string{e.ID}, Dedupe: e.Dedupe, RunsOf: true}
	n.Runs = named(e.Run, e.NewRun)
	return n
}

// enqueue queues an entry, once for each id. With a claim it is claimed in the
// same turn, or not queued at all.
func enqueue(t *turn, e Entry) (Change, Taken, error) {
	if d, ok := t.s.Dispatches[e.ID]; ok {
		return t.again(d, e)
	}
	if err := t.admit(e); err != nil {
		return Change{}, Taken{}, err
	}
	run, err := t.runFor(e)
	if err != nil {
		return Change{}, Taken{}, err
	}
	if t.head.Tenant == "" {
		t.head.Tenant = e.Tenant
	}
	if t.head.Seq == 0 && e.ParentThread != e.Thread {
		t.head.Parent = e.ParentThread
	}
	if t.head.CreatedAt.IsZero() {
		t.head.CreatedAt = t.now
	}
	t.head.Seq++
	d := Dispatch{
		ID: e.ID, Thread: e.Thread, RunID: run.ID, Seq: t.head.Seq, Priority: e.Priority, Epoch: t.head.Epoch, Dedupe: e.Dedupe,
		Origin: e.Origin, Status: Queued, AvailableAt: e.AvailableAt, MaxAttempts: max(e.MaxAttempts, 1),
		CreatedAt: t.now, Request: e.Request, Digest: e.Digest, Own: e.ownID,
	}
	t.putRun(run)
	t.put(d)
	t.out.Dispatch = d.ID
	if e.Claim != nil {
		return t.claim(d, *e.Claim), t.taken(d.ID), nil
	}
	t.out.Signal = true
	return t.sooner(d), t.taken(d.ID), nil
}

// again answers for an entry that is there already.
func (t *turn) again(d Dispatch, e Entry) (Change, Taken, error) {
	if err := t.head.admits(e.Tenant); err != nil {
		return Change{}, Taken{}, err
	}
	if d.Digest != e.Digest || (e.Run != "" && e.Run != d.RunID) {
		return Change{}, Taken{}, fmt.Errorf("%w: dispatch %.80q is there, and is another request", ErrExists, d.ID)
	}
	if e.Claim != nil && d.Token != e.Claim.Token {
		return Change{}, Taken{}, fmt.Errorf("%w: dispatch %.80q", ErrExists, d.ID)
	}
	k := t.taken(d.ID)
	k.Repeated = true
	return Change{}, k, nil
}

// admit says whether the thread takes an entry.
func (t *turn) admit(e Entry) error {
	if err := t.head.admits(e.Tenant); err != nil {
		return err
	}
	switch {
	case t.s.Duplicate != "":
		return fmt.Errorf("%w: dedupe_key=%.80s", ErrExists, e.Dedupe)
	case e.Claim != nil && (t.head.Claim != nil || t.now.Before(t.head.ReservedUntil) && t.head.Interrupt != e.Interrupt):
		return ErrBusy
	case e.Claim == nil && t.head.Queued >= t.depth:
		return fmt.Errorf("%w: thread %.80q has %d queued dispatches; wait or cancel some", ErrFull, e.Thread, t.head.Queued)
	}
	return nil
}

// admits refuses a tenant that does not own the thread.
func (h *Head) admits(tenant string) error {
	if h.Seq > 0 && h.Tenant != tenant {
		return fmt.Errorf("%w: thread %.80q belongs to another tenant", ErrInvalid, h.Thread)
	}
	return nil
}

// runFor is the run that an entry goes to.
func (t *turn) runFor(e Entry) (Run, error) {
	id := e.Run
	if id == "" && t.head.Open.Status == RunWaiting {
		id = t.head.Open.ID
	}
	if r, ok := t.s.Runs[id]; ok {
		if r.Status == RunDone || r.Status == RunRunning && !e.Follow {
			return Run{}, fmt.Errorf("%w: run_id '%.80s' is not open for dispatch", ErrInvalid, id)
		}
		r.Input = append(r.Input, e.Input...)
		return r, nil
	}
	if id == "" {
		id = e.NewRun
	}
	if id == "" {
		return Run{}, fmt.Errorf("%w: an entry needs the id of a run", ErrInvalid)
	}
	if _, taken := t.s.Runs[id]; taken {
		return Run{}, fmt.Errorf("%w: run_id '%.80s'", ErrExists, id)
	}
	agent := e.Agent
	if agent == "" {
		agent = t.head.Latest.Agent
	}
	return Run{
		ID: id, Thread: e.Thread, Agent: agent, Parent: e.Parent, Status: RunCreated, Input: e.Input, CreatedAt: t.now,
		Own: e.ownRun && id == e.NewRun && id != e.Run,
	}, nil
}

// sooner makes the thread due for a new dispatch, if it was not before.
func (t *turn) sooner(d Dispatch) Change {
	rank := t.rank(d.AvailableAt, d.Priority)
	if !t.head.DueAt.IsZero() {
		rank = min(rank, t.head.Rank)
	}
	return t.write(earliest(t.head.DueAt, d.AvailableAt), rank)
}
