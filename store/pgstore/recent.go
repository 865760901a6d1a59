package pgstore

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// Bounds of what a process remembers: threads, and for how long; dispatches of a thread; and bytes of a request, or of what a
// run has.
const (
	recentThreads    = 1024
	recentTime       = time.Minute
	recentDispatches = 8
	recentBytes      = 4096
	// seenThreads is of how many threads a process knows that it has seen them.
	seenThreads = 1 << 16
)

// recent is what this process knows of the threads that it has worked on lately, each as of one version of its row. A transition
// may be decided on it, if it is only written should the row still have that version: nothing else of a thread changes without it, but
// for terminal dispatches, which are purged. They are not remembered.
type recent struct {
	mu      sync.Mutex
	threads map[string]*version
	// seen are hashes of the threads that this process has seen.
	seen map[uint64]struct{}
	seed maphash.Seed
}

// version is a thread at one version of its row, which is the number of the transaction that wrote it. It is not changed.
type version struct {
	xmin       uint32
	at         time.Time
	head       mailbox.Head
	dispatches map[string]mailbox.Dispatch
	runs       map[string]mailbox.Run
}

func (r *recent) of(thread string) *version {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.threads[thread]
	if v != nil && time.Since(v.at) > recentTime {
		delete(r.threads, thread)
		v = nil
	}
	return v
}

// first says whether this process has never seen the thread, as far as it knows, and notes that it has.
func (r *recent) first(thread string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) >= seenThreads {
		clear(r.seen)
	}
	if r.seen == nil {
		r.seen, r.seed = map[uint64]struct{}{}, maphash.MakeSeed()
	}
	h := maphash.String(r.seed, thread)
	_, seen := r.seen[h]
	r.seen[h] = struct{}{}
	return !seen
}

func (r *recent) keep(v *version) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.threads == nil || len(r.threads) >= recentThreads {
		r.threads = map[string]*version{}
	}
	r.threads[v.head.Thread] = v
}

func (r *recent) forget(thread string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.threads, thread)
}

func (r *recent) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.threads)
}

// changed remembers a thread after a change of what was known of it. Requests says that those that were known are whole.
func (r *recent) changed(xmin uint32, dispatches map[string]mailbox.Dispatch, runs map[string]mailbox.Run, c mailbox.Change, requests bool) {
	v := &version{xmin: xmin, at: time.Now(), head: readAgain(*c.Head), dispatches: map[string]mailbox.Dispatch{}, runs: map[string]mailbox.Run{}}
	for id := range dispatches {
		if requests {
			v.addDispatch(dispatches[id])
		}
	}
	for i := range c.Dispatches {
		d := c.Dispatches[i]
		old, known := dispatches[d.ID]
		switch {
		case !known:
			v.addDispatch(d)
		case requests:
			d.Request = old.Request // it never changes
			v.addDispatch(d)
		default:
			delete(v.dispatches, d.ID)
		}
	}
	for id := range runs {
		v.addRun(runs[id])
	}
	for i := range c.Runs {
		v.addRun(c.Runs[i])
	}
	if len(v.dispatches) > recentDispatches || len(v.runs) > 2*recentDispatches {
		r.forget(v.head.Thread)
		return
	}
	r.keep(v)
}

func (v *version) addDispatch(d mailbox.Dispatch) {
	delete(v.dispatches, d.ID)
	if d.Status.Terminal() || len(d.Request) > recentBytes {
		return
	}
	tidy(&d.Origin, &d.LastError, &d.Token, &d.Owner, (*string)(&d.End), &d.Instance, (*string)(&d.RunStatus), &d.Termination, &d.Response, &d.RunError, &d.Digest)
	whole(&d.AvailableAt, &d.CreatedAt, &d.UpdatedAt, &d.CompletedAt)
	d.Request = slices.Clone(d.Request)
	v.dispatches[d.ID] = d
}

func (v *version) addRun(r mailbox.Run) {
	delete(v.runs, r.ID)
	if r.Status == mailbox.RunDone && r.ID != v.head.Latest.ID && r.ID != v.head.Open.ID || len(r.Data)+len(r.Output) > recentBytes {
		return
	}
	tidy(&r.Agent, &r.Parent, (*string)(&r.Status), &r.Termination, &r.Wait, &r.Output, &r.Error, &r.Session)
	whole(&r.WaitUntil, &r.CreatedAt, &r.StartedAt, &r.FinishedAt, &r.UpdatedAt)
	r.Input, r.Data = slices.Clone(r.Input), slices.Clone(r.Data)
	if len(r.Input) == 0 {
		r.Input = nil
	}
	v.runs[r.ID] = r
}

// readAgain is a head as it would be read.
func readAgain(h mailbox.Head) mailbox.Head {
	if h.Claim != nil {
		c := *h.Claim
		tidy(&c.Token, &c.Owner, &c.Stop)
		whole(&c.Until)
		h.Claim = &c
	}
	for _, ref := range []*mailbox.RunRef{&h.Latest, &h.Open} {
		tidy(&ref.Agent, (*string)(&ref.Status), &ref.Wait)
		whole(&ref.WaitUntil)
	}
	tidy(&h.Commit, &h.Interrupt)
	whole(&h.ReservedUntil, &h.DueAt, &h.UpdatedAt)
	return h
}

// tidy makes texts what the tables make of them, and whole times.
func tidy(list ...*string) {
	for _, s := range list {
		*s = strings.ToValidUTF8(*s, "\uFFFD")
	}
}

func whole(list ...*time.Time) {
	for _, t := range list {
		if !t.IsZero() {
			*t = time.UnixMilli(t.UnixMilli()).UTC()
		}
	}
}

// state is what a need names of the thread, if all of it is remembered. It is the caller's own.
func (v *version) state(need mailbox.Need) (now seen, ok bool) {
	if need.Dedupe != "" || need.Image {
		return now, false
	}
	ids, ok := v.wanted(need)
	if !ok {
		return now, false
	}
	now = seen{known: true, dispatches: map[string]bool{}, data: map[string][]byte{}}
	now.State = mailbox.State{Head: readAgain(v.head), Dispatches: map[string]mailbox.Dispatch{}, Runs: map[string]mailbox.Run{}}
	runs := slices.Clone(need.Runs)
	if need.RunsOf {
		runs = append(runs, v.head.Open.ID, v.head.Latest.ID)
	}
	for id := range ids {
		d := v.dispatches[id]
		if !need.Requests {
			d.Request = nil
		}
		d.Request = slices.Clone(d.Request)
		now.State.Dispatches[id], now.dispatches[id] = d, true
		if need.RunsOf {
			runs = append(runs, d.RunID)
		}
	}
	for _, id := range runs {
		r, there := v.runs[id]
		if id != "" && !there {
			return now, false
		}
		if there {
			now.data[id] = r.Data
			r.Input, r.Data = slices.Clone(r.Input), slices.Clone(r.Data)
			now.State.Runs[id] = r
		}
	}
	now.settle(v.head.Thread, need)
	v.later(&now, need)
	return now, true
}

// wanted are the dispatches that a need names, if all are remembered.
func (v *version) wanted(need mailbox.Need) (ids map[string]bool, ok bool) {
	ids = map[string]bool{}
	for _, id := range need.Dispatches {
		ids[id] = true
	}
	if need.Claimed && v.head.Claim != nil {
		ids[v.head.Claim.Dispatch] = true
	}
	for id := range ids {
		if _, there := v.dispatches[id]; !there {
			return nil, false
		}
	}
	if !need.Next && !need.Queued {
		return ids, true
	}
	queued := 0
	for id := range v.dispatches {
		if v.dispatches[id].Status == mailbox.Queued {
			ids[id] = true
			queued++
		}
	}
	return ids, queued == v.head.Queued
}

// later finds when the next queued dispatch is due that is not yet, and takes out what was looked at and not asked for.
func (v *version) later(now *seen, need mailbox.Need) {
	if !need.Next {
		return
	}
	for id := range maps.Keys(v.dispatches) {
		d := v.dispatches[id]
		if d.Status != mailbox.Queued {
			continue
		}
		if d.AvailableAt.After(need.Now) && (now.Later.IsZero() || d.AvailableAt.Before(now.Later)) {
			now.Later = d.AvailableAt
		}
		if !need.Queued && id != now.Next && id != now.Holder && !slices.Contains(need.Dispatches, id) {
			delete(now.State.Dispatches, id)
		}
	}
}
