package mailboxtest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// model is what a thread should be, kept in the plainest way, and what the two processes that use it know.
type model struct {
	epoch, fence, seq uint64
	// log are the ids of its messages.
	log        []string
	dispatches map[string]*modelDispatch
	runs       map[string]*modelRun
	open       string
	claim      *modelClaim
	// reserved is until when a foreground request that was refused keeps the thread.
	reserved time.Time
	// jobs are the executions of all claims, the latest one last.
	jobs []*modelJob
	// count is the number of the step.
	count int
	// paused is set while the thread is paused, halted while its tenant is, and known if a process has seen that.
	paused, halted bool
	known          [2]bool
	// polled is set for a process that has polled: what it executes can be postponed.
	polled [2]bool
}

type modelDispatch struct {
	id, run, dedupe string
	internal        bool
	seq, epoch      uint64
	priority        uint8
	status          mailbox.Status
	available       time.Time
	attempts, max   int
	postponed       int
	holding         bool
	// fence is that of its latest claim, and end how it lost it.
	fence uint64
	end   string
}

// Ends of a claim.
const (
	endSettled  = "settled"
	endExpired  = "expired"
	endReleased = "released"
)

type modelRun struct {
	status      mailbox.RunStatus
	termination string
	wait        string
	dispatch    string
	until       time.Time
}

type modelClaim struct {
	d     *modelDispatch
	fence uint64
	until time.Time
	stop  bool
}

// modelJob is an execution. It is live as long as its lease is renewed, and cause is why it is not.
type modelJob struct {
	process int
	d       *modelDispatch
	fence   uint64
	cause   error
	over    bool
}

func newModel() *model {
	return &model{dispatches: map[string]*modelDispatch{}, runs: map[string]*modelRun{}}
}

// job is the execution of the nth latest claim, if it has not ended.
func (m *model) job(n int) *modelJob {
	if n >= len(m.jobs) || m.jobs[len(m.jobs)-1-n].over {
		return nil
	}
	return m.jobs[len(m.jobs)-1-n]
}

// stale reports whether a step is one of an execution that has lost its claim.
func (m *model) stale(s step) bool {
	if s.Do != doCommit && s.Do != doSettle {
		return false
	}
	j := m.job(s.Token)
	return j != nil && (m.claim == nil || m.claim.fence != j.fence)
}

// ask asks the latest execution of a dispatch in a process to end. That may be one that has lost its claim.
func (m *model) ask(process int, dispatch string, cause error) {
	for _, j := range slices.Backward(m.jobs) {
		if j.process == process && !j.over && j.d.id == dispatch {
			j.cause = cmp.Or(j.cause, cause)
			return
		}
	}
}

// keeper is the execution in a process whose claim it is and which renews it, or nil.
func (m *model) keeper(process int) *modelJob {
	for _, j := range m.jobs {
		if m.claim != nil && j.fence == m.claim.fence && j.process == process && !j.over && j.cause == nil {
			return j
		}
	}
	return nil
}

// runID is the run of a dispatch, by its number.
func (m *model) runID(i int) string {
	if d := m.dispatches[modelID(i)]; d != nil {
		return d.run
	}
	return "nothing"
}

// queue lists what is queued, in order.
func (m *model) queue() []*modelDispatch {
	var out []*modelDispatch
	for _, d := range m.dispatches {
		if d.status == mailbox.Queued {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b *modelDispatch) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.seq, b.seq))
	})
	return out
}

// next is what a claim would get: the first of the queue that is due, unless one that failed holds its
// place before it.
func (m *model) next(now time.Time) *modelDispatch {
	for _, d := range m.queue() {
		if !d.available.After(now) {
			return d
		}
		if d.holding {
			return nil
		}
	}
	return nil
}

// setRun keeps which run is open.
func (m *model) setRun(id string, status mailbox.RunStatus) {
	m.runs[id].status = status
	open := m.open != "" && m.open != id
	switch {
	case status == mailbox.RunDone && m.open == id:
		m.open = ""
	case status == mailbox.RunDone || status == mailbox.RunCreated && open:
	default:
		m.open = id
	}
}

// give gives the thread to a dispatch.
func (m *model) give(d *modelDispatch, process int, now time.Time) {
	m.fence++
	d.status, d.fence, d.end, d.holding = mailbox.Claimed, m.fence, "", false
	m.claim, m.reserved = &modelClaim{d: d, fence: m.fence, until: now.Add(modelLease)}, time.Time{}
	m.jobs = append(m.jobs, &modelJob{process: process, d: d, fence: m.fence})
	m.runs[d.run].dispatch, m.runs[d.run].wait = d.id, ""
	m.setRun(d.run, mailbox.RunRunning)
}

// finish ends a dispatch.
func (m *model) finish(d *modelDispatch, s mailbox.Status, end string) {
	d.status, d.end, d.holding = s, end, false
	if m.claim != nil && m.claim.d == d {
		m.claim = nil
	}
}

// stopRun ends the run of a dispatch that did not end by itself. A run that waits since an earlier dispatch
// continues waiting.
func (m *model) stopRun(d *modelDispatch, termination string) {
	r := m.runs[d.run]
	if r.status == mailbox.RunDone || r.status == mailbox.RunWaiting && r.dispatch != d.id {
		return
	}
	r.termination, r.dispatch, r.wait = termination, d.id, ""
	m.setRun(d.run, mailbox.RunDone)
}

// over reports whether the run of a dispatch ended or waits with it.
func (m *model) over(d *modelDispatch) bool {
	r := m.runs[d.run]
	return r.dispatch == d.id && (r.status == mailbox.RunDone || r.status == mailbox.RunWaiting && !r.postponed())
}

// postponed reports whether a run waits for a time or for the end of a pause, with a dispatch that is queued.
func (r *modelRun) postponed() bool {
	return r.status == mailbox.RunWaiting && (r.wait == mailbox.WaitRate || r.wait == mailbox.WaitPause)
}

// suspend lets the run of a dispatch that is queued again wait.
func (m *model) suspend(d *modelDispatch, wait string, until time.Time) {
	if r := m.runs[d.run]; r.status == mailbox.RunRunning {
		r.wait, r.until = wait, until
		m.setRun(d.run, mailbox.RunWaiting)
	}
}

// fail counts an attempt.
func (m *model) fail(d *modelDispatch, at time.Time, end string, final bool) {
	d.attempts++
	d.postponed = 0
	if final || d.attempts >= d.max {
		m.finish(d, mailbox.DeadLetter, end)
		m.stopRun(d, mailbox.TerminationError)
		return
	}
	m.finish(d, mailbox.Queued, end)
	d.available, d.holding = at, true
}

// snapshot is what can be compared.
type snapshot struct {
	epoch, fence uint64
	queued, log  int
	open, queue  string
	claim        string
	until        time.Time
	stop         bool
	// paused is that of the thread, halted that of its tenant.
	paused, halted bool
	reserved       time.Time
	items          []item
	// due is not compared: it may be early.
	due time.Time
}

type item struct {
	id, status string
	attempts   int
	postponed  int
	epoch, seq uint64
	available  time.Time
	holding    bool
	end        string
	run        string
}

func (i item) compare(o item) int { return cmp.Compare(i.id, o.id) }

func (s snapshot) equal(o snapshot) bool {
	return slices.Equal(s.items, o.items) && s.epoch == o.epoch && s.fence == o.fence && s.queued == o.queued && s.log == o.log && s.open == o.open &&
		s.queue == o.queue && s.claim == o.claim && s.until.Equal(o.until) && s.stop == o.stop && s.paused == o.paused && s.halted == o.halted &&
		s.reserved.Equal(o.reserved)
}

func (m *model) snapshot() snapshot {
	waiting := []string{}
	for _, d := range m.queue() {
		waiting = append(waiting, d.id)
	}
	out := snapshot{
		epoch: m.epoch, fence: m.fence, queued: len(waiting), log: len(m.log), open: m.open, queue: fmt.Sprint(waiting), paused: m.paused, halted: m.halted,
		reserved: m.reserved,
	}
	if c := m.claim; c != nil {
		out.claim, out.until, out.stop = fmt.Sprint(c.d.id, " ", c.fence), c.until, c.stop
	}
	for id, d := range m.dispatches {
		out.items = append(out.items, item{id, string(d.status), d.attempts, d.postponed, d.epoch, d.seq, d.available, d.holding, d.end, d.run})
	}
	for id, r := range m.runs {
		out.items = append(out.items, item{id: id, status: fmt.Sprint(r.status, " ", r.termination, r.wait), run: r.dispatch})
	}
	slices.SortFunc(out.items, item.compare)
	return out
}

// invariants checks what holds whatever was done: one claim at most, as many as are counted, and a thread that is due
// no later than something can be done for it.
func (m *model) invariants(s snapshot, now time.Time) string {
	holders := 0
	for _, i := range s.items {
		if i.status == string(mailbox.Claimed) {
			holders++
		}
	}
	if holders > 1 || (holders == 1) != (s.claim != "") {
		return fmt.Sprintf("%d dispatches are claimed, the claim is %q", holders, s.claim)
	}
	if m.claim != nil && !s.due.Equal(m.claim.until) {
		return fmt.Sprintf("the thread is due at %v, and the lease ends at %v", s.due, m.claim.until)
	}
	if at, some := m.soonest(now); some && (s.due.IsZero() || s.due.After(at)) {
		return fmt.Sprintf("the thread is due at %v, and something can be done at %v (now %v)", s.due, at, now)
	}
	return ""
}

// rests checks that a thread of which nothing could be claimed is not due any more, unless its run waited long enough: no process polls it over
// and over.
func (m *model) rests(s snapshot, now time.Time) string {
	if m.claim == nil && !m.halted && !m.lapses(now) && !s.due.IsZero() && !s.due.After(now) {
		return fmt.Sprintf("nothing can be claimed at %v, and the thread is due at %v", now, s.due)
	}
	return ""
}

// soonest is when something can be done for the thread: a lease taken, a dispatch claimed, a
// wait ended.
func (m *model) soonest(now time.Time) (at time.Time, some bool) {
	if m.claim != nil {
		return m.claim.until, true
	}
	if m.paused {
		return at, false
	}
	earlier := func(t time.Time) {
		if t.Before(now) {
			t = now
		}
		if !some || t.Before(at) {
			at, some = t, true
		}
	}
	for _, d := range m.queue() {
		if d.available.Before(m.reserved) {
			earlier(m.reserved)
		} else {
			earlier(d.available)
		}
		if d.holding && d.available.After(now) {
			break // what is behind it waits as long
		}
	}
	if r := m.runs[m.open]; r != nil && r.status == mailbox.RunWaiting && !r.until.IsZero() {
		if over := time.UnixMilli(max(r.until.UnixMilli(), now.UnixMilli(), m.reserved.UnixMilli())); !m.came(over) {
			earlier(over)
		}
	}
	return at, some
}
