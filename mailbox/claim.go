package mailbox

import (
	"cmp"
	"time"
)

// Taken is a dispatch as a transition left it, with the claim of the thread if it has one.
type Taken struct {
	Dispatch Dispatch
	Claim    *Claim
	Run      Run
	Head     Head
	// Repeated says that what was to be queued was there already.
	Repeated bool
	// First says that the claim is the first one of the dispatch.
	First bool
}

// Holds says whether the dispatch has been claimed with the token and still is.
func (k Taken) Holds(token string) bool {
	return k.Claim != nil && k.Claim.Token == token && k.Claim.Dispatch == k.Dispatch.ID
}

// hold is the claim of a dispatch as its holder names it.
func (k Taken) hold() Hold {
	return Hold{Thread: k.Dispatch.Thread, Dispatch: k.Dispatch.ID, Token: k.Dispatch.Token}
}

// taken describes a dispatch after what was put.
func (t *turn) taken(id string) Taken {
	d := t.s.Dispatches[id]
	k := Taken{Dispatch: d, Run: t.s.Runs[d.RunID], Head: t.head, First: id != "" && id == t.first}
	if c := t.head.Claim; c != nil {
		own := *c
		k.Head.Claim = &own
		if c.Dispatch == id {
			k.Claim = &own
		}
	}
	return k
}

// claimNeed is what a claim looks at: of the dispatch with that id, or of whatever
// is next.
func claimNeed(id string, now time.Time) Need {
	n := Need{Next: true, Now: now, Claimed: true, RunsOf: true, Requests: true}
	if id != "" {
		n.Dispatches = []string{id}
	}
	return n
}

// claimNext claims the thread for a dispatch: the one with that id, due or not, or
// the next one. It says which, or none; once more, when it settled one that needs no
// execution.
func claimNext(t *turn, id string, r ClaimRequest) (out Change, taken string, more bool) {
	if c := t.head.Claim; c != nil {
		if c.Token == r.Token {
			return Change{}, c.Dispatch, false
		}
		return Change{}, "", false
	}
	if t.now.Before(t.head.ReservedUntil) {
		return t.nothing(id), "", false
	}
	d, ok := t.candidate(id)
	if !ok {
		return t.nothing(id), "", false
	}
	if d.Epoch < t.head.Epoch {
		t.supersede(d, staleText)
		return t.free(), "", id == ""
	}
	if t.ended(d) {
		t.acknowledge(d, EndSettled)
		return t.free(), "", id == ""
	}
	return t.claim(t.revived(d, r), r), d.ID, false
}

// revived gives a dispatch a new run if its own has ended without it, as that of two messages for a run that waited: what it
// brings is not lost, and the run that ended stays as it is.
func (t *turn) revived(d Dispatch, r ClaimRequest) Dispatch {
	id := cmp.Or(r.NewRun, r.Instance)
	old, ok := t.s.Runs[d.RunID]
	if !ok || old.Status != RunDone || id == "" {
		return d
	}
	d.RunID = id
	t.putRun(Run{ID: id, Thread: d.Thread, Agent: old.Agent, Parent: old.Parent, Status: RunCreated, CreatedAt: t.now})
	return d
}

// candidate is the dispatch to claim.
func (t *turn) candidate(id string) (Dispatch, bool) {
	if id != "" {
		d, ok := t.s.Dispatches[id]
		return d, ok && d.Status == Queued
	}
	if ready, _ := t.ready(); !ready {
		return Dispatch{}, false
	}
	return t.s.Dispatches[t.s.Next], true
}

// nothing mends when the thread is due, if it was due for nothing.
func (t *turn) nothing(id string) Change {
	if id != "" || t.head.DueAt.IsZero() || t.head.DueAt.After(t.now) {
		return Change{}
	}
	due := t.s.Later
	if t.s.Next != "" && t.now.Before(t.head.ReservedUntil) {
		due = t.head.ReservedUntil
	}
	return t.write(due, t.rank(due, PriorityDefault))
}

// ended says that the run of a dispatch came to an end, or to wait, with this dispatch: only
// the acknowledgement is missing.
func (t *turn) ended(d Dispatch) bool {
	r, ok := t.s.Runs[d.RunID]
	return ok && r.Dispatch == d.ID && (r.Status == RunDone || r.Status == RunWaiting)
}

// acknowledge ends a dispatch whose run came to an end before.
func (t *turn) acknowledge(d Dispatch, end ClaimEnd) {
	r := t.s.Runs[d.RunID]
	d.RunStatus, d.Termination, d.Response, d.RunError = r.Status, r.Termination, r.Output, r.Error
	t.settled(d, Acked, end)
}

// claim gives the thread to a dispatch.
func (t *turn) claim(d Dispatch, r ClaimRequest) Change {
	if d.Token == "" {
		t.first = d.ID
	}
	t.head.Fence++
	t.head.ReservedUntil = time.Time{}
	t.head.Claim = &Claim{Dispatch: d.ID, Token: r.Token, Fence: t.head.Fence, Owner: r.Owner, Until: t.now.Add(r.Lease)}
	d.Status, d.Token, d.Fence, d.Owner, d.End = Claimed, r.Token, t.head.Fence, r.Owner, ""
	d.Instance, d.RunStatus = r.Instance, RunRunning
	d.Termination, d.Response, d.RunError, d.Holding = "", "", "", false
	t.put(d)
	if run, ok := t.s.Runs[d.RunID]; ok {
		run.Status, run.Wait, run.WaitUntil = RunRunning, "", time.Time{}
		run.Dispatch, run.Session = d.ID, r.Instance
		if run.StartedAt.IsZero() {
			run.StartedAt = t.now
		}
		t.putRun(run)
	}
	t.out.Signal = false
	return t.write(time.Time{}, 0)
}

// extend moves the end of a lease. A claim whose thread was interrupted is not
// extended; its holder may still write and settle until the lease is over.
func extend(t *turn, h Hold, lease time.Duration) (Change, Claim, error) {
	if err := t.holds(h); err != nil {
		return Change{}, Claim{}, err
	}
	if d := t.s.Dispatches[h.Dispatch]; d.Epoch < t.head.Epoch {
		return Change{}, *t.head.Claim, &ConflictError{Expected: d.Epoch, Actual: t.head.Epoch}
	}
	t.head.Claim.Until = t.now.Add(lease)
	return t.write(time.Time{}, 0), *t.head.Claim, nil
}

// Hold names a claim, as its holder does.
type Hold struct{ Thread, Dispatch, Token string }

// holds checks that a claim is that of the thread.
func (t *turn) holds(h Hold) error {
	d, ok := t.s.Dispatches[h.Dispatch]
	if !ok {
		return wrap("dispatch", h.Dispatch, ErrNotFound)
	}
	if c := t.head.Claim; c == nil || c.Token != h.Token || c.Dispatch != d.ID {
		return wrap("dispatch", h.Dispatch, wrongToken())
	}
	return nil
}
