package compaction

import (
	"context"
	"fmt"
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
	decision, detail := c.admit(ctx, request)
	c.tell(t, id, decision, detail)
	if !decision.Allowed || request.TokensBefore == nil {
		c.release(t, f)
		return false
	}
	return c.launch(ctx, t, id, f)
}

// reserve takes the thread's one place for a compaction, before anything else
// happens, so that two steps cannot both start one. It returns nil when there is
// nothing to consider.
func (c *Compactor) reserve(t *thread, id string, log []abi.Message) (*flight, *abi.AdmitRequest) {
	now := c.cfg.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.flight != nil && now.After(t.flight.deadline) {
		c.fail(t, id, t.flight, "no result came before the deadline")
	}
	if t.flight != nil {
		t.flight.steps++
		return nil, nil
	}
	tokens := t.tokens(View(log, t.latest()))
	if tokens < c.cfg.Policy.ThresholdTokens && !t.requested {
		t.said = ""
		return nil, nil
	}
	f := &flight{id: c.cfg.NewID(), before: tokens, started: now, deadline: now.Add(c.cfg.Quota.Timeout)}
	request := &abi.AdmitRequest{
		ThreadID: id, NowMS: now.UnixMilli(), ThresholdTokens: c.cfg.Policy.ThresholdTokens,
		WindowTokens: c.cfg.Policy.WindowTokens, AttemptCount: int64(t.attempts),
		MaxAttempts: int64(c.cfg.Quota.MaxAttempts), CooldownMS: c.cfg.Quota.Cooldown.Milliseconds(),
		CooldownRemainingMS: c.cooldown(t, now), Signals: c.cfg.Signals(),
	}
	if rng, ok := Plan(log, t.latest(), c.cfg.Policy); ok {
		f.rng, f.source = *rng, log[rng.From:rng.To+1]
		request.TokensBefore, request.RangeTokens = &f.before, rng.Tokens
	}
	if m := t.latest(); m != nil {
		f.marker = m.ID
	}
	t.flight = f
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

// tell passes a decision on. Equal refusals in a row are told once, and counted
// with the next one that differs.
func (c *Compactor) tell(t *thread, id string, d *AdmissionDecision, detail string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !d.Allowed && t.said == d.Reason {
		t.repeats++
		return
	}
	t.said = d.Reason
	e := Event{Kind: EventAdmission, Decision: d, Reason: detail, Policy: c.cfg.PolicyName, PreTokens: int64(tokensOf(d)), Count: t.repeats}
	t.repeats = 0
	c.observe(id, e)
}

func tokensOf(d *AdmissionDecision) uint64 {
	if d.TokensBefore == nil {
		return 0
	}
	return *d.TokensBefore
}

// release gives a reservation back that came to nothing.
func (c *Compactor) release(t *thread, f *flight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.flight == f {
		t.flight = nil
	}
}

// launch spawns the summarizer of a reservation.
func (c *Compactor) launch(ctx context.Context, t *thread, id string, f *flight) bool {
	t.mu.Lock()
	request := &abi.SummarizeRequest{
		ThreadID: id, Messages: f.source, PreviousSummary: f.rng.PreviousSummary,
		BudgetTokens: c.cfg.Policy.SummaryTokens, Focus: t.focus,
		ReadFiles: f.rng.ReadFiles, ModifiedFiles: f.rng.ModifiedFiles, LiveTasks: c.cfg.LiveTasks(id),
	}
	t.attempts++
	t.lastStart = f.started
	t.requested, t.focus = false, ""
	t.mu.Unlock()
	task, err := c.cfg.Spawn(ctx, id, TaskType, taskDescription, func(ctx context.Context, emit func(string, any) bool) error {
		return c.summarize(ctx, f.id, request, emit)
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		c.fail(t, id, f, fmt.Sprintf("the task could not be started: %v", err))
		return false
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
	return true
}

// summarize is the body of the task.
func (c *Compactor) summarize(ctx context.Context, reservation string, r *abi.SummarizeRequest, emit func(string, any) bool) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Quota.Timeout)
	defer cancel()
	summary, err := c.ask(ctx, r)
	if err != nil {
		emit(EventTypeFailed, map[string]any{"reservation": reservation, "error": err.Error()})
		return err
	}
	emit(EventTypeCompacted, map[string]any{
		"reservation": reservation, "boundary_message_id": r.Messages[len(r.Messages)-1].ID,
		"summary": summary.Text, "from_id": summary.FromID, "to_id": summary.ToID,
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
	if err == nil && s == nil {
		err = fmt.Errorf("compaction: the summarizer returned nothing")
	}
	return s, err
}
