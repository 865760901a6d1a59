package compaction

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Consider starts a compaction of the thread in the background if its view has
// reached the threshold, or if one was requested, and if quota, signals and
// policy admit it. It reports whether one was started, and never waits for one.
func (c *Compactor) Consider(ctx context.Context, id string, log []abi.Message) bool {
	t := c.thread(id)
	f, request := c.reserve(t, id, log)
	if f == nil {
		return false
	}
	decision, detail, retry := c.admit(ctx, request)
	if !c.decided(t, id, f, decision, detail, retry) {
		return false
	}
	return c.launch(ctx, t, id, f)
}

// maxRetry bounds how long a policy may keep itself from being asked again.
const maxRetry = time.Hour

// decided records a decision, and gives the reservation back when it is a
// refusal.
func (c *Compactor) decided(t *thread, id string, f *flight, d *AdmissionDecision, detail string, retry time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if retry > 0 {
		t.notBefore = c.cfg.Now().Add(min(retry, maxRetry))
	}
	c.tell(t, id, d, detail)
	if d.Reason == abi.ReasonNoPreparation {
		t.requested, t.focus = false, "" // what was asked for is not there
	}
	if t.flight != f {
		return false // it took so long that the deadline passed
	}
	if !d.Allowed {
		t.flight = nil
	}
	return d.Allowed
}

// reserve takes the thread's one place for a compaction, before anything else
// happens, so that two steps cannot both start one. It returns nil when there is
// nothing to consider.
func (c *Compactor) reserve(t *thread, id string, log []abi.Message) (*flight, *abi.AdmitRequest) {
	now := c.cfg.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.flight != nil && now.After(t.flight.deadline) {
		c.fail(t, id, t.flight, "timed out: no result came before the deadline")
	}
	if t.flight != nil {
		t.flight.steps++
		return nil, nil
	}
	t.index.read(log)
	tokens := t.bill.apply(t.size(t.latest()))
	if tokens < c.cfg.Policy.ThresholdTokens && !t.requested {
		c.repeated(t, id)
		return nil, nil
	}
	f := &flight{id: c.cfg.NewID(), before: tokens, started: now, deadline: now.Add(queueFactor * c.cfg.Quota.Timeout)}
	request := &abi.AdmitRequest{
		ThreadID: id, NowMS: now.UnixMilli(), ThresholdTokens: c.cfg.Policy.ThresholdTokens,
		WindowTokens: c.cfg.Policy.WindowTokens, AttemptCount: int64(t.attempts),
		MaxAttempts: int64(c.cfg.Quota.MaxAttempts), CooldownMS: c.cfg.Quota.Cooldown.Milliseconds(),
		CooldownRemainingMS: c.cooldown(t, now), Signals: c.cfg.Signals(),
	}
	if rng, ok := t.index.plan(log, t.latest(), c.cfg.Policy, t.bill.apply); ok {
		f.rng, f.source = *rng, log[rng.From:rng.To+1]
		request.TokensBefore, request.RangeTokens = &f.before, rng.Tokens
	}
	if m := t.latest(); m != nil {
		f.marker = m.ID
	}
	t.flight, t.early = f, make(map[string]string)
	return f, request
}

// cooldown is how long the next start must wait, in milliseconds, rounded up.
func (c *Compactor) cooldown(t *thread, now time.Time) int64 {
	until := t.notBefore
	later := func(at time.Time) {
		if at.After(until) {
			until = at
		}
	}
	if !t.lastStart.IsZero() {
		later(t.lastStart.Add(c.cfg.Quota.Cooldown))
	}
	if t.failures > 0 {
		later(t.lastFail.Add(min(time.Second<<min(t.failures-1, 16), maxBackoff)))
	}
	if !until.After(now) {
		return 0
	}
	return (until.Sub(now) + time.Millisecond - 1).Milliseconds()
}

// tell passes a decision on. Equal refusals in a row are told once at first, and
// then all together when they are over.
func (c *Compactor) tell(t *thread, id string, d *AdmissionDecision, detail string) {
	if t.said != nil && !d.Allowed && t.said.Reason == d.Reason {
		t.said, t.detail = d, detail
		t.repeats++
		return
	}
	c.repeated(t, id)
	c.observe(id, c.admission(d, detail))
	if !d.Allowed {
		t.said = d
	}
}

// repeated tells of the refusals that were not told, and forgets the last one.
func (c *Compactor) repeated(t *thread, id string) {
	if t.repeats > 0 {
		e := c.admission(t.said, t.detail)
		e.Count = t.repeats
		c.observe(id, e)
	}
	t.said, t.detail, t.repeats = nil, "", 0
}

func (c *Compactor) admission(d *AdmissionDecision, detail string) Event {
	return Event{Kind: EventAdmission, Decision: d, Reason: detail, Policy: c.cfg.PolicyName, PreTokens: int64(tokensOf(d))}
}

func tokensOf(d *AdmissionDecision) uint64 {
	if d.TokensBefore == nil {
		return 0
	}
	return *d.TokensBefore
}

// launch spawns the summarizer of a reservation.
func (c *Compactor) launch(ctx context.Context, t *thread, id string, f *flight) bool {
	t.mu.Lock()
	request := &abi.SummarizeRequest{
		ThreadID: id, Messages: f.source, PreviousSummary: f.rng.PreviousSummary,
		BudgetTokens: c.budget(&f.rng), Focus: t.focus,
		ReadFiles: f.rng.ReadFiles, ModifiedFiles: f.rng.ModifiedFiles, LiveTasks: c.cfg.LiveTasks(id),
	}
	t.attempts++
	t.lastStart = f.started
	t.requested, t.focus = false, ""
	t.mu.Unlock()
	task, err := c.cfg.Spawn(ctx, id, TaskType, taskDescription, func(ctx context.Context, emit func(string, any) bool) error {
		return c.summarize(ctx, t, f, request, emit)
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		if t.flight == f {
			c.fail(t, id, f, fmt.Sprintf("the task could not be started: %v", err))
		}
		return false
	}
	c.started(t, id, f, task)
	if cause, ok := t.early[task]; ok && t.flight == f {
		c.fail(t, id, f, "the task ended without a result: "+cause)
	}
	return true
}

// queueFactor is how many timeouts a task may wait for its turn.
const queueFactor = 4

// budget is how long a summary of the range may be: what the policy says, but
// never so long that it could not save what the policy wants saved.
func (c *Compactor) budget(r *Range) int64 {
	tokens := r.Tokens
	if r.PreviousSummary != nil {
		tokens += textTokens(*r.PreviousSummary)
	}
	// A summarizer counts tokens in its own way: a fifth is left for that.
	most := float64(tokens) * (1 - c.cfg.Policy.MinSavingsRatio) * 0.8
	return max(1, min(c.cfg.Policy.SummaryTokens, int64(most)))
}

// started learns the id of the task, from Spawn or from the task's own result,
// whichever comes first.
func (c *Compactor) started(t *thread, id string, f *flight, task string) {
	if f.task != "" {
		return
	}
	f.task = task
	t.recent = append(t.recent, task)
	if len(t.recent) > 2*maxMarkers {
		t.recent = t.recent[1:]
	}
	c.observe(id, Event{
		Kind: EventStarted, TaskID: task, Policy: c.cfg.PolicyName, FromID: f.rng.FromID, ToID: f.rng.ToID,
		PreTokens: f.rng.Tokens, Messages: len(f.source),
	})
}

// maxSummary bounds what a summarizer may return, in bytes.
const maxSummary = 1 << 20

// summarize is the body of the task. It also scores the summary, so that the
// step that swaps it in does not have to.
func (c *Compactor) summarize(
	ctx context.Context, t *thread, f *flight, r *abi.SummarizeRequest, emit func(string, any) bool,
) error {
	// The time runs from here: the task may have waited for its turn.
	ctx, said := withNotes(ctx)
	t.mu.Lock()
	f.deadline, f.notes = c.cfg.Now().Add(c.cfg.Quota.Timeout), said
	t.mu.Unlock()
	late := fmt.Errorf("compaction: timed out after %s", c.cfg.Quota.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Quota.Timeout, late)
	defer cancel()
	summary, err := c.ask(ctx, r)
	if err != nil && errors.Is(context.Cause(ctx), late) {
		err = fmt.Errorf("%w: %w", late, err)
	}
	if err != nil {
		emit(EventTypeFailed, map[string]any{"reservation": f.id, "error": clip(err.Error())})
		return err
	}
	written := strings.ToValidUTF8(summary.Text, "\ufffd")
	quality := c.scorer.Score(f.source, f.rng.PreviousSummary, written)
	t.mu.Lock()
	f.scored, f.summary = &quality, written
	// The result is on its way: it is not thrown away because it is read late.
	f.deadline = c.cfg.Now().Add(queueFactor * c.cfg.Quota.Timeout)
	t.mu.Unlock()
	emit(EventTypeCompacted, map[string]any{
		"reservation": f.id, "boundary_message_id": f.rng.ToID,
		"summary": written, "from_id": clip(summary.FromID), "to_id": clip(summary.ToID),
	})
	return nil
}

// ask calls the summarizer; one that panics has failed.
func (c *Compactor) ask(ctx context.Context, r *abi.SummarizeRequest) (s *abi.Summary, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("compaction: the summarizer panicked: %v", p)
		}
	}()
	s, err = c.cfg.Summarizer.Summarize(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, errors.New("compaction: the summarizer returned nothing")
	case len(s.Text) > maxSummary:
		return nil, fmt.Errorf("compaction: the summary has %d bytes, more than %d", len(s.Text), maxSummary)
	}
	return s, nil
}
