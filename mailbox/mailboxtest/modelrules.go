package mailboxtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// do lets a process take a step, and returns its answer.
func (m *model) do(s step, process int, now time.Time) string {
	m.count++
	run := fmt.Sprint("run-n", m.count)
	d := m.dispatches[modelID(s.ID)]
	switch s.Do {
	case doEnqueue:
		return m.enqueue(s, d, run, now)
	case doInline:
		return m.inline(s, d, process, run, now)
	case doPoll:
		return m.poll(process, run, now)
	case doExtend, doSettle, doCommit:
		if j := m.job(s.Token); j != nil {
			return m.work(s, j, now)
		}
		return "skipped"
	case doInterrupt:
		return m.interrupt(process, time.Time{})
	case doPause:
		return m.pause(process, s.Internal)
	case doTenant:
		m.halted, m.known[process] = s.Internal, s.Internal
		return "ok"
	case doCancel:
		return m.cancel(d, process)
	case doCancelRun:
		return m.cancelRun(m.runID(s.ID), process)
	case doReplay, doDiscard:
		return m.letter(s.Do, d, run, now)
	case doDrop:
		return m.drop(now)
	default:
		return "ok"
	}
}

// work lets an execution do something.
func (m *model) work(s step, j *modelJob, now time.Time) string {
	switch {
	case s.Do == doSettle:
		return m.settle(s, j, now)
	case s.Do == doCommit:
		return m.commit(s, j, now)
	case j.cause != nil:
		return "skipped" // its lease is not renewed any more
	default:
		return m.renew(j, now)
	}
}

func (m *model) duplicate(key string) bool {
	for _, o := range m.dispatches {
		if key != "" && o.dedupe == key && !o.status.Terminal() {
			return true
		}
	}
	return false
}

func (m *model) enqueue(s step, d *modelDispatch, run string, now time.Time) string {
	switch {
	case d != nil && d.internal != s.Internal:
		return mailbox.ErrExists.Error() // another request
	case d != nil:
		return "ok, again true"
	case m.duplicate(s.Dedupe):
		return mailbox.ErrExists.Error()
	case len(m.queue()) >= modelDepth:
		return mailbox.ErrFull.Error()
	}
	m.add(s, run, now)
	return "ok, again false"
}

// add puts a dispatch into the queue.
func (m *model) add(s step, run string, now time.Time) *modelDispatch {
	if open := m.runs[m.open]; open != nil && open.status == mailbox.RunWaiting && !open.postponed() {
		run = m.open
	} else {
		m.runs[run] = &modelRun{}
		m.setRun(run, mailbox.RunCreated)
	}
	m.seq++
	d := &modelDispatch{
		id: modelID(s.ID), run: run, dedupe: s.Dedupe, internal: s.Internal, seq: m.seq, epoch: m.epoch, priority: s.Priority,
		status: mailbox.Queued, available: now.Add(s.Delay), max: s.Max,
	}
	m.dispatches[d.id] = d
	return d
}

// inline is a foreground request. One for a thread that is claimed waits for the holder, which is not played.
func (m *model) inline(s step, d *modelDispatch, process int, run string, now time.Time) string {
	switch {
	case m.claim != nil:
		return "skipped"
	case m.paused || m.known[process]:
		return mailbox.ErrPaused.Error()
	case d != nil:
		return mailbox.ErrExists.Error()
	}
	m.interrupt(process, now.Add(2*modelStop))
	if m.duplicate(s.Dedupe) {
		return mailbox.ErrExists.Error()
	}
	s.Delay = 0
	m.give(m.add(s, run, now), process, now)
	return "ok"
}

// poll does what the thread is due for.
func (m *model) poll(process int, run string, now time.Time) string {
	m.known[process], m.polled[process] = m.halted, true
	switch c := m.claim; {
	case m.halted, c != nil && now.Before(c.until):
	case c != nil:
		if j := m.keeper(process); j != nil {
			m.renew(j, now) // its own
		} else {
			m.expire(now)
		}
	case m.lapses(now):
		r := m.runs[m.open]
		r.termination, r.wait = mailbox.TerminationCancelled, ""
		m.setRun(m.open, mailbox.RunDone)
	default:
		return m.claimNext(process, run, now)
	}
	return "ok"
}

func (m *model) claimNext(process int, run string, now time.Time) string {
	for !m.paused && !now.Before(m.reserved) {
		d := m.next(now)
		if d == nil {
			break
		}
		if m.over(d) {
			m.finish(d, mailbox.Acked, endSettled)
			continue
		}
		if m.runs[d.run].status == mailbox.RunDone { // it gets a run of its own
			d.run, m.runs[run] = run, &modelRun{}
			m.setRun(run, mailbox.RunCreated)
		}
		m.give(d, process, now)
		return "ok, began " + d.id
	}
	return "ok"
}

// pause begins or ends the pause of the thread.
func (m *model) pause(process int, begin bool) string {
	if m.seq == 0 {
		return mailbox.ErrNotFound.Error()
	}
	m.paused = begin
	if begin && m.claim != nil {
		m.ask(process, m.claim.d.id, mailbox.ErrPaused)
	}
	return "ok"
}

// held is the claim of an execution, if it is that of the thread; and else the answer.
func (m *model) held(j *modelJob) (*modelClaim, string) {
	switch {
	case m.dispatches[j.d.id] == nil:
		return nil, mailbox.ErrNotFound.Error()
	case m.claim == nil || m.claim.fence != j.fence:
		return nil, mailbox.ErrConflict.Error()
	default:
		return m.claim, ""
	}
}

// renew renews the lease of an execution, which learns by that what it is asked.
func (m *model) renew(j *modelJob, now time.Time) string {
	c, _ := m.held(j)
	switch {
	case c == nil:
		j.cause = mailbox.ErrLeaseLost
		return "ok"
	case c.d.epoch < m.epoch:
		j.cause = mailbox.ErrStopped
		return "ok"
	case c.stop:
		j.cause = mailbox.ErrStopped
	case m.paused:
		j.cause = mailbox.ErrPaused
	}
	c.until = now.Add(modelLease)
	return "ok"
}

func (m *model) commit(s step, j *modelJob, now time.Time) string {
	c, refused := m.held(j)
	if c == nil {
		if j.cause == nil && refused == mailbox.ErrConflict.Error() {
			j.cause = mailbox.ErrLeaseLost
		}
		return refused
	}
	m.log = append(m.log, fmt.Sprint("n", m.count))
	if s.Internal { // progress
		c.d.attempts, c.d.postponed = 0, 0
	}
	if s.Result != "" {
		m.stand(c.d, s.result(now))
	}
	return "ok"
}

// stand writes where the run of a dispatch stands.
func (m *model) stand(d *modelDispatch, result mailbox.Result) {
	r := m.runs[d.run]
	r.termination, r.wait, r.until = result.Termination, result.Wait, result.WaitUntil
	m.setRun(d.run, result.Status)
}

// settle ends an execution. What becomes of its dispatch depends on what it was asked, too.
func (m *model) settle(s step, j *modelJob, now time.Time) string {
	j.over = true
	end, result := s.End, s.result(now)
	switch {
	case end == endAck:
		if result.Status == "" {
			result.Status = mailbox.RunDone
		}
	case j.cause == mailbox.ErrPaused: //nolint:errorlint // the model's own
		end = endGiveBack
	case j.cause == mailbox.ErrStopped: //nolint:errorlint // the model's own
		end, result = endWithdraw, mailbox.Result{Status: mailbox.RunDone, Termination: mailbox.TerminationCancelled}
	case end == endPostpone && !m.polled[j.process]:
		end = endRetry // nothing would continue it
	case end == endBury:
		result = mailbox.Result{Status: mailbox.RunDone, Termination: mailbox.TerminationError}
	}
	d := m.dispatches[j.d.id]
	if d == nil {
		return "ok"
	}
	mine := d.fence == j.fence
	if mine && (d.end == endSettled || d.end == endReleased && end == endGiveBack) {
		return "ok" // it was settled already
	}
	late := mine && d.end == endExpired && d.status == mailbox.Queued && end == endAck && m.claim == nil && d.epoch == m.epoch
	c, _ := m.held(j)
	if c == nil && !late {
		return "ok" // and refused
	}
	if r := m.runs[d.run]; r.status != mailbox.RunDone && slices.Contains([]string{endAck, endWithdraw, endBury}, end) {
		m.stand(d, result)
	}
	if d.epoch < m.epoch {
		m.finish(d, mailbox.Superseded, endSettled)
		m.stopRun(d, mailbox.TerminationCancelled)
		return "ok"
	}
	m.judge(d, end, now.Add(s.Delay), now, c != nil && c.stop)
	return "ok"
}

// judge applies what an execution came to.
func (m *model) judge(d *modelDispatch, end string, at, now time.Time, stop bool) {
	switch {
	case end == endAck:
		m.finish(d, mailbox.Acked, endSettled)
	case end == endWithdraw || stop:
		m.finish(d, mailbox.Cancelled, endSettled)
		m.stopRun(d, mailbox.TerminationCancelled)
	case end == endGiveBack:
		m.finish(d, mailbox.Queued, endReleased)
		d.available = now
		if m.paused {
			m.suspend(d, mailbox.WaitPause, time.Time{})
		}
	case end == endPostpone:
		m.finish(d, mailbox.Queued, endSettled)
		d.available, d.holding, d.postponed = at, true, d.postponed+1
		m.suspend(d, mailbox.WaitRate, d.available)
	default:
		m.fail(d, at, endSettled, end == endBury)
	}
}

// interrupt makes what is claimed stale, and supersedes what users have queued.
func (m *model) interrupt(process int, reserved time.Time) string {
	m.epoch++
	m.reserved = reserved
	superseded, kept := 0, 0
	for _, d := range m.queue() {
		d.epoch = m.epoch
		if d.internal {
			kept++
			continue
		}
		m.finish(d, mailbox.Superseded, endSettled)
		m.stopRun(d, mailbox.TerminationCancelled)
		superseded++
	}
	if m.claim != nil {
		m.ask(process, m.claim.d.id, mailbox.ErrStopped)
	}
	return fmt.Sprintf("ok, superseded %d, kept %d", superseded, kept)
}

func (m *model) cancel(d *modelDispatch, process int) string {
	switch {
	case d == nil || d.status.Terminal() && d.status != mailbox.Cancelled:
		return "nothing"
	case d.status == mailbox.Queued:
		m.finish(d, mailbox.Cancelled, endSettled)
		m.stopRun(d, mailbox.TerminationCancelled)
	case d.status == mailbox.Claimed:
		m.claim.stop = true
		m.ask(process, d.id, mailbox.ErrStopped)
	}
	return "ok"
}

// cancelRun cancels what is queued and executed for a run, and its waiting.
func (m *model) cancelRun(id string, process int) string {
	answer := "nothing"
	list := m.queue()
	if m.claim != nil {
		list = append(list, m.claim.d)
	}
	for _, d := range list {
		if d.run == id {
			answer = m.cancel(d, process)
		}
	}
	r := m.runs[id]
	switch {
	case r == nil:
	case r.status == mailbox.RunWaiting:
		r.termination, r.wait = mailbox.TerminationCancelled, ""
		m.setRun(id, mailbox.RunDone)
		answer = "ok"
	case r.status == mailbox.RunDone && r.termination == mailbox.TerminationCancelled:
		answer = "ok"
	}
	return answer
}

func (m *model) expire(now time.Time) {
	c := m.claim
	if !now.After(c.until) {
		return
	}
	d := c.d
	switch {
	case m.over(d):
		m.finish(d, mailbox.Acked, endExpired)
	case d.epoch < m.epoch:
		m.finish(d, mailbox.Superseded, endSettled)
		m.stopRun(d, mailbox.TerminationCancelled)
	case c.stop:
		m.finish(d, mailbox.Cancelled, endExpired)
		m.stopRun(d, mailbox.TerminationCancelled)
	default:
		m.fail(d, now, endExpired, false)
	}
}

// lapses reports whether the open run has waited long enough, and nothing came in time for it.
func (m *model) lapses(now time.Time) bool {
	r := m.runs[m.open]
	return m.claim == nil && !m.paused && !now.Before(m.reserved) && !m.came(now) && r != nil && r.status == mailbox.RunWaiting && !r.until.IsZero() && !r.until.After(now)
}

// came reports whether something is queued that was due: what is for later does not count.
func (m *model) came(now time.Time) bool {
	return slices.ContainsFunc(m.queue(), func(d *modelDispatch) bool { return d.holding || !d.available.After(now) })
}

// letter replays or discards a dead letter.
func (m *model) letter(do action, d *modelDispatch, run string, now time.Time) string {
	switch {
	case d == nil:
		return mailbox.ErrNotFound.Error()
	case do == doDiscard && d.status == mailbox.Cancelled:
		return "ok"
	case d.status != mailbox.DeadLetter:
		return mailbox.ErrConflict.Error()
	case do == doDiscard:
		d.status = mailbox.Cancelled
		return "ok"
	case len(m.queue()) >= modelDepth:
		return mailbox.ErrFull.Error()
	case m.duplicate(d.dedupe):
		return mailbox.ErrExists.Error()
	}
	d.status, d.attempts, d.epoch, d.run, d.end, d.available, d.holding = mailbox.Queued, 0, m.epoch, run, "", now, false
	m.runs[run] = &modelRun{}
	m.setRun(run, mailbox.RunCreated)
	return "ok"
}

func (m *model) drop(now time.Time) string {
	if m.claim != nil && !now.After(m.claim.until) {
		return mailbox.ErrBusy.Error()
	}
	former := *m
	*m = *newModel()
	m.fence, m.jobs, m.count, m.halted, m.known, m.polled = former.fence, former.jobs, former.count, former.halted, former.known, former.polled
	return "ok"
}
