package mailboxtest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

// do takes a step and returns its answer.
func (m *model) do(s step, now time.Time) string {
	m.count++
	token, run := fmt.Sprint("token", m.count), fmt.Sprint("run-n", m.count)
	d := m.dispatches[modelID(s.ID)]
	switch s.Do {
	case doEnqueue, doInline:
		return m.enqueue(s, d, token, run, now)
	case doClaim:
		return m.claimNext(token, run, now)
	case doExtend:
		return m.extend(s, now)
	case doSettle:
		return m.settle(s, now)
	case doCommit:
		return m.commit(s, now)
	case doInterrupt:
		return m.interrupt(s)
	case doPause:
		return m.pause(s.Internal)
	case doTenant:
		m.halted = s.Internal
		return "ok"
	case doCancel:
		return m.cancel(d)
	case doCancelRun:
		return m.cancelRun(m.runID(s.ID))
	case doExpire:
		return m.expire(now)
	case doLapse:
		return m.lapse(now)
	case doReplay, doDiscard:
		return m.letter(s.Do, d, run, now)
	case doDrop:
		return m.drop(now)
	default:
		return "ok"
	}
}

func (m *model) enqueue(s step, d *modelDispatch, token, run string, now time.Time) string {
	if d != nil {
		if s.Do == doInline {
			return queue.ErrExists.Error() // claimed by another token, or by none
		}
		return fmt.Sprint("ok ", d.id, " ", d.status)
	}
	if s.Do == doInline && m.paused {
		return queue.ErrPaused.Error()
	}
	for _, o := range m.dispatches {
		if s.Dedupe != "" && o.dedupe == s.Dedupe && !o.status.Terminal() {
			return queue.ErrExists.Error()
		}
	}
	if s.Do == doInline && m.claim != nil {
		return queue.ErrBusy.Error()
	}
	if s.Do == doEnqueue && len(m.queue()) >= modelDepth {
		return queue.ErrFull.Error()
	}
	if open := m.runs[m.open]; open != nil && open.status == queue.RunWaiting && !open.postponed() {
		run = m.open
	} else {
		m.runs[run] = &modelRun{}
		m.setRun(run, queue.RunCreated)
	}
	m.seq++
	d = &modelDispatch{
		id: modelID(s.ID), run: run, dedupe: s.Dedupe, internal: s.Internal, seq: m.seq, epoch: m.epoch, priority: s.Priority,
		status: queue.Queued, available: now.Add(s.Delay), max: s.Max,
	}
	m.dispatches[d.id] = d
	if s.Do == doInline {
		m.give(d, token, now)
	}
	return fmt.Sprint("ok ", d.id, " ", d.status)
}

func (m *model) claimNext(token, run string, now time.Time) string {
	for m.claim == nil && !m.paused {
		d := m.next(now)
		if d == nil {
			break
		}
		if m.over(d) {
			m.finish(d, queue.Acked, queue.EndSettled)
			continue
		}
		m.renew(d, run)
		m.give(d, token, now)
		return "ok " + d.id
	}
	return "nothing"
}

// pause begins or ends the pause of the thread.
func (m *model) pause(begin bool) string {
	if m.seq == 0 {
		return queue.ErrNotFound.Error()
	}
	m.paused = begin
	return "ok"
}

// renew gives a dispatch a run of its own if that which it was queued for has ended.
func (m *model) renew(d *modelDispatch, run string) {
	if m.runs[d.run].status == queue.RunDone {
		d.run, m.runs[run] = run, &modelRun{}
		m.setRun(run, queue.RunCreated)
	}
}

// held is the claim that a step speaks of, if it is that of the thread; and else the answer.
func (m *model) held(s step) (*modelClaim, string) {
	d := m.dispatches[m.lastHolder(s.Token)]
	switch {
	case d == nil:
		return nil, queue.ErrNotFound.Error()
	case m.claim == nil || m.claim.d != d || m.claim.token != m.lastToken(s.Token):
		return nil, queue.ErrConflict.Error()
	default:
		return m.claim, ""
	}
}

func (m *model) extend(s step, now time.Time) string {
	c, refused := m.held(s)
	switch {
	case c == nil:
		return refused + asked(false, false)
	case c.d.epoch < m.epoch:
		return queue.ErrConflict.Error() + asked(c.stop, false)
	}
	c.until = now.Add(lease)
	return "ok" + asked(c.stop, m.paused)
}

func (m *model) commit(s step, now time.Time) string {
	c, refused := m.held(s)
	if c == nil {
		return refused
	}
	m.log = append(m.log, fmt.Sprint("n", m.count))
	if s.Internal { // progress
		c.d.attempts, c.d.postponed = 0, 0
	}
	if s.Result != "" {
		m.stand(c.d, s, now)
	}
	return "ok"
}

// stand writes where the run of a dispatch stands.
func (m *model) stand(d *modelDispatch, s step, now time.Time) {
	result := s.result(now)
	r := m.runs[d.run]
	r.termination, r.wait, r.until = result.Termination, result.Wait, result.WaitUntil
	m.setRun(d.run, result.Status)
}

func (m *model) settle(s step, now time.Time) string {
	d := m.dispatches[m.lastHolder(s.Token)]
	if d == nil {
		return queue.ErrNotFound.Error()
	}
	mine := d.token == m.lastToken(s.Token)
	if mine && (d.end == queue.EndSettled || d.end == queue.EndReleased && s.Verdict == queue.GiveBack) {
		if d.status == queue.Superseded && s.Verdict != queue.Supersede {
			return queue.ErrConflict.Error()
		}
		return "ok" // it was settled already
	}
	late := mine && d.end == queue.EndExpired && d.status == queue.Queued && s.Verdict == queue.Ack && m.claim == nil && d.epoch == m.epoch
	c, refused := m.held(s)
	if c == nil && !late {
		return refused
	}
	if r := m.runs[d.run]; s.Result != "" && r.status != queue.RunDone && !slices.Contains([]queue.Verdict{queue.Retry, queue.GiveBack, queue.Postpone}, s.Verdict) {
		m.stand(d, s, now)
	}
	if d.epoch < m.epoch && s.Verdict != queue.Supersede {
		m.finish(d, queue.Superseded, queue.EndSettled)
		m.stopRun(d, queue.TerminationCancelled)
		return queue.ErrConflict.Error()
	}
	m.judge(d, s, now, c != nil && c.stop)
	return "ok"
}

// judge applies a verdict to a dispatch.
func (m *model) judge(d *modelDispatch, s step, now time.Time, stop bool) {
	switch {
	case s.Verdict == queue.Ack:
		m.finish(d, queue.Acked, queue.EndSettled)
	case s.Verdict == queue.Supersede:
		m.finish(d, queue.Superseded, queue.EndSettled)
		m.stopRun(d, queue.TerminationCancelled)
	case s.Verdict == queue.Withdraw || stop:
		m.finish(d, queue.Cancelled, queue.EndSettled)
		m.stopRun(d, queue.TerminationCancelled)
	case s.Verdict == queue.GiveBack:
		m.finish(d, queue.Queued, queue.EndReleased)
		d.available = now
		if m.paused {
			m.suspend(d, queue.WaitPause, time.Time{})
		}
	case s.Verdict == queue.Postpone:
		m.finish(d, queue.Queued, queue.EndSettled)
		d.available, d.holding, d.postponed = now.Add(s.Delay), true, d.postponed+1
		m.suspend(d, cmp.Or(s.result(now).Wait, queue.WaitRate), d.available)
	default:
		m.fail(d, now.Add(s.Delay), queue.EndSettled, s.Verdict == queue.Bury)
	}
}

func (m *model) interrupt(s step) string {
	m.epoch++
	superseded, kept := 0, 0
	for _, d := range m.queue() {
		d.epoch = m.epoch
		if s.Internal && d.internal {
			kept++
			continue
		}
		m.finish(d, queue.Superseded, queue.EndSettled)
		m.stopRun(d, queue.TerminationCancelled)
		superseded++
	}
	return fmt.Sprintf("ok, superseded %d, kept %d", superseded, kept)
}

func (m *model) cancel(d *modelDispatch) string {
	switch {
	case d == nil || d.status.Terminal() && d.status != queue.Cancelled:
		return "nothing"
	case d.status == queue.Queued:
		m.finish(d, queue.Cancelled, queue.EndSettled)
		m.stopRun(d, queue.TerminationCancelled)
	case d.status == queue.Claimed:
		m.claim.stop = true
	}
	return "ok"
}

func (m *model) cancelRun(id string) string {
	r := m.runs[id]
	if r == nil || r.status != queue.RunWaiting {
		if r != nil && r.status == queue.RunDone && r.termination == queue.TerminationCancelled {
			return "ok"
		}
		return "nothing"
	}
	r.termination, r.wait = queue.TerminationCancelled, ""
	m.setRun(id, queue.RunDone)
	return "ok"
}

func (m *model) expire(now time.Time) string {
	c := m.claim
	if c == nil || !now.After(c.until) {
		return "nothing"
	}
	d := c.d
	switch {
	case m.over(d):
		m.finish(d, queue.Acked, queue.EndExpired)
	case d.epoch < m.epoch:
		m.finish(d, queue.Superseded, queue.EndSettled)
		m.stopRun(d, queue.TerminationCancelled)
	case c.stop:
		m.finish(d, queue.Cancelled, queue.EndExpired)
		m.stopRun(d, queue.TerminationCancelled)
	default:
		m.fail(d, now, queue.EndExpired, false)
	}
	return "ok " + d.id
}

func (m *model) lapse(now time.Time) string {
	if !m.lapses(now) {
		return "nothing"
	}
	r := m.runs[m.open]
	r.termination, r.wait = queue.TerminationCancelled, ""
	m.setRun(m.open, queue.RunDone)
	return "ok"
}

// lapses reports whether the open run has waited long enough, and nothing came in time for it.
func (m *model) lapses(now time.Time) bool {
	r := m.runs[m.open]
	return m.claim == nil && !m.paused && !m.came(now) && r != nil && r.status == queue.RunWaiting && !r.until.IsZero() && !r.until.After(now)
}

// came reports whether something is queued that was due: what is for later does not count.
func (m *model) came(now time.Time) bool {
	return slices.ContainsFunc(m.queue(), func(d *modelDispatch) bool { return d.holding || !d.available.After(now) })
}

// letter replays or discards a dead letter.
func (m *model) letter(do action, d *modelDispatch, run string, now time.Time) string {
	switch {
	case d == nil:
		return queue.ErrNotFound.Error()
	case do == doDiscard && d.status == queue.Cancelled:
		return "ok"
	case d.status != queue.DeadLetter:
		return queue.ErrConflict.Error()
	case do == doDiscard:
		d.status = queue.Cancelled
		return "ok"
	case len(m.queue()) >= modelDepth:
		return queue.ErrFull.Error()
	}
	for _, o := range m.dispatches {
		if d.dedupe != "" && o.dedupe == d.dedupe && !o.status.Terminal() {
			return queue.ErrExists.Error()
		}
	}
	d.status, d.attempts, d.epoch, d.run, d.end, d.available, d.holding = queue.Queued, 0, m.epoch, run, "", now, false
	m.runs[run] = &modelRun{}
	m.setRun(run, queue.RunCreated)
	return "ok"
}

func (m *model) drop(now time.Time) string {
	if m.claim != nil && !now.After(m.claim.until) {
		return queue.ErrBusy.Error()
	}
	tokens, holders, count, fence, halted := m.tokens, m.holders, m.count, m.fence, m.halted
	*m = *newModel()
	m.tokens, m.holders, m.count, m.fence, m.halted = tokens, holders, count, fence, halted
	return "ok"
}
