package mailboxtest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

// model is what a thread should be, kept in the plainest way.
type model struct {
	epoch, fence, seq uint64
	// log are the ids of its messages.
	log        []string
	dispatches map[string]*modelDispatch
	runs       map[string]*modelRun
	open       string
	claim      *modelClaim
	// holders and tokens are those of all claims, the latest one last. count is the number of the step.
	holders, tokens []string
	count           int
	// paused is set while the thread is paused, halted while its tenant is.
	paused, halted bool
}

type modelDispatch struct {
	id, run, dedupe, token string
	internal               bool
	seq, epoch             uint64
	priority               uint8
	status                 queue.Status
	available              time.Time
	attempts, max          int
	postponed              int
	holding                bool
	end                    queue.ClaimEnd
}

type modelRun struct {
	status      queue.RunStatus
	termination string
	wait        string
	dispatch    string
	until       time.Time
}

type modelClaim struct {
	d     *modelDispatch
	token string
	until time.Time
	stop  bool
}

func newModel() *model {
	return &model{dispatches: map[string]*modelDispatch{}, runs: map[string]*modelRun{}}
}

func fromEnd(list []string, n int) string {
	if n >= len(list) {
		return "unknown"
	}
	return list[len(list)-1-n]
}

func (m *model) lastHolder(n int) string { return fromEnd(m.holders, n) }
func (m *model) lastToken(n int) string  { return fromEnd(m.tokens, n) }

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
		if d.status == queue.Queued {
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
func (m *model) setRun(id string, status queue.RunStatus) {
	m.runs[id].status = status
	open := m.open != "" && m.open != id
	switch {
	case status == queue.RunDone && m.open == id:
		m.open = ""
	case status == queue.RunDone || status == queue.RunCreated && open:
	default:
		m.open = id
	}
}

// give gives the thread to a dispatch.
func (m *model) give(d *modelDispatch, token string, now time.Time) {
	m.fence++
	d.status, d.token, d.end, d.holding = queue.Claimed, token, "", false
	m.claim = &modelClaim{d: d, token: token, until: now.Add(lease)}
	m.holders, m.tokens = append(m.holders, d.id), append(m.tokens, token)
	m.runs[d.run].dispatch, m.runs[d.run].wait = d.id, ""
	m.setRun(d.run, queue.RunRunning)
}

// finish ends a dispatch.
func (m *model) finish(d *modelDispatch, s queue.Status, end queue.ClaimEnd) {
	d.status, d.end, d.holding = s, end, false
	if m.claim != nil && m.claim.d == d {
		m.claim = nil
	}
}

// stopRun ends the run of a dispatch that did not end by itself. A run that waits since an earlier dispatch
// continues waiting.
func (m *model) stopRun(d *modelDispatch, termination string) {
	r := m.runs[d.run]
	if r.status == queue.RunDone || r.status == queue.RunWaiting && r.dispatch != d.id {
		return
	}
	r.termination, r.dispatch, r.wait = termination, d.id, ""
	m.setRun(d.run, queue.RunDone)
}

// over reports whether the run of a dispatch ended or waits with it.
func (m *model) over(d *modelDispatch) bool {
	r := m.runs[d.run]
	return r.dispatch == d.id && (r.status == queue.RunDone || r.status == queue.RunWaiting && !r.postponed())
}

// postponed reports whether a run waits for a time or for the end of a pause, with a dispatch that is queued.
func (r *modelRun) postponed() bool {
	return r.status == queue.RunWaiting && (r.wait == queue.WaitRate || r.wait == queue.WaitPause)
}

// suspend lets the run of a dispatch that is queued again wait.
func (m *model) suspend(d *modelDispatch, wait string, until time.Time) {
	if r := m.runs[d.run]; r.status == queue.RunRunning {
		r.wait, r.until = wait, until
		m.setRun(d.run, queue.RunWaiting)
	}
}

// fail counts an attempt.
func (m *model) fail(d *modelDispatch, at time.Time, end queue.ClaimEnd, final bool) {
	d.attempts++
	d.postponed = 0
	if final || d.attempts >= d.max {
		m.finish(d, queue.DeadLetter, end)
		m.stopRun(d, queue.TerminationError)
		return
	}
	m.finish(d, queue.Queued, end)
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
	end        queue.ClaimEnd
	run        string
}

func (i item) compare(o item) int { return cmp.Compare(i.id, o.id) }

func (s snapshot) equal(o snapshot) bool {
	return slices.Equal(s.items, o.items) && s.epoch == o.epoch && s.fence == o.fence && s.queued == o.queued && s.log == o.log && s.open == o.open &&
		s.queue == o.queue && s.claim == o.claim && s.until.Equal(o.until) && s.stop == o.stop && s.paused == o.paused && s.halted == o.halted
}

func (m *model) snapshot() snapshot {
	waiting := []string{}
	for _, d := range m.queue() {
		waiting = append(waiting, d.id)
	}
	out := snapshot{epoch: m.epoch, fence: m.fence, queued: len(waiting), log: len(m.log), open: m.open, queue: fmt.Sprint(waiting), paused: m.paused, halted: m.halted}
	if c := m.claim; c != nil {
		out.claim, out.until, out.stop = c.d.id+" "+c.token, c.until, c.stop
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
		if i.status == string(queue.Claimed) {
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
	if m.claim == nil && !m.lapses(now) && !s.due.IsZero() && !s.due.After(now) {
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
		earlier(d.available)
		if d.holding && d.available.After(now) {
			break // what is behind it waits as long
		}
	}
	if r := m.runs[m.open]; r != nil && r.status == queue.RunWaiting && !r.until.IsZero() && !m.came(r.until) {
		earlier(r.until)
	}
	return at, some
}
