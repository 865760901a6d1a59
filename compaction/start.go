package compaction

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Consider starts a compaction of the thread in the background if its view has
// reached the threshold, or if one was requested, and if quota, signals and
// policy admit it. It reports whether one was started, and never waits for one.
func (c *Compactor) Consider(ctx context.Context, id string, log []abi.Message) bool {
	return c.ConsiderWith(ctx, id, log, nil)
}

// maxRetry bounds how long a policy may keep itself from being asked again.
const maxRetry = time.Hour

// decided records a decision, and gives the reservation back when it is a
// refusal.
func (c *Compactor) decided(t *thread, q *query, d *AdmissionDecision, detail string, retry time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := q.flight
	if retry > 0 {
		c.postpone(t, retry, q.version)
	}
	c.tell(t, f, d, detail)
	if d.Reason == abi.ReasonNoPreparation {
		t.requested, t.focus = false, "" // what was asked for is not there
	}
	if t.flight != f {
		return false // it took so long that the deadline passed
	}
	if !d.Allowed {
		t.flight = nil
		f.leave()
	}
	return d.Allowed
}

// query is a question to the admission policy.
type query struct {
	// flight is the reservation, nil while another compaction has the thread's place.
	flight  *flight
	request *abi.AdmitRequest
	// held means that this version of the policy does not want to be asked yet.
	held    bool
	version string
}

// reserve takes the thread's one place for a compaction, before anything else
// happens, so that two steps cannot both start one. It returns nil when there is
// nothing to consider.
func (c *Compactor) reserve(id string, log []abi.Message) (*thread, *query) {
	now := c.conf().Now()
	t := c.hold(id)
	defer t.mu.Unlock()
	if !c.load(t) {
		return t, nil
	}
	c.takeOver(t)
	c.look(t, log)
	if f := t.flight; f != nil && f.Result == nil && now.After(f.deadline) {
		c.fail(t, f, "timed out: no result came before the deadline", false)
	}
	pending := t.flight != nil || c.foreign(t)
	if t.flight != nil {
		t.flight.steps++
	}
	tokens := t.bill.apply(t.size(log))
	if tokens < c.conf().Policy.ThresholdTokens && !t.requested {
		if !pending {
			c.repeated(t)
		}
		return t, nil
	}
	q := &query{held: c.held(t, now), version: versionOf(c.conf().Admitter)}
	if pending {
		q.request = c.sample(t, now)
		q.request.Pending, q.request.TokensBefore = true, &tokens
		return t, q
	}
	if c.undone(t, tokens) {
		return t, nil
	}
	q.flight = c.newFlight(t, tokens, now)
	q.request = c.question(t, q.flight, log, now)
	t.flight = q.flight
	return t, q
}

// underWay is the compaction that has the thread's place, of whichever process.
func (t *thread) underWay() *flight {
	if t.flight == nil && t.state.InFlight != nil {
		return &flight{InFlight: *t.state.InFlight}
	}
	return t.flight
}

func (c *Compactor) newFlight(t *thread, tokens int64, now time.Time) *flight {
	patience := queueFactor * c.conf().Quota.Timeout
	f := &flight{started: now, deadline: now.Add(patience), main: true}
	f.InFlight = InFlight{
		ID: c.conf().NewID(), Owner: c.conf().Owner, Attempt: t.state.Attempts + 1, Before: tokens, Policy: c.conf().PolicyName,
		StartedMS: now.UnixMilli(), DeadlineMS: now.Add(2 * patience).UnixMilli(),
	}
	if m := t.latest(); m != nil {
		f.Marker = m.ID
	}
	return f
}

// tell reports a decision, about a flight if there is one: another one may have ended while the policy was asked. Equal
// refusals in a row are reported once at first, and then all together when they are over.
func (c *Compactor) tell(t *thread, f *flight, d *AdmissionDecision, detail string) {
	if t.said != nil && !d.Allowed && t.said.Reason == d.Reason && (t.about == nil || f != nil && t.about.ID == f.ID) {
		t.said, t.detail = d, detail
		t.repeats++
		return
	}
	c.repeated(t)
	c.observe(t, c.admission(f, d, detail))
	if !d.Allowed {
		t.said = d
	}
	if d.Reason == abi.ReasonPending {
		t.about = f
	}
}

// repeated tells of the refusals that were not told, and forgets the last one.
func (c *Compactor) repeated(t *thread) {
	if t.repeats > 0 {
		e := c.admission(t.about, t.said, t.detail)
		e.Count = t.repeats
		c.observe(t, e)
	}
	t.said, t.about, t.detail, t.repeats = nil, nil, "", 0
}

func (c *Compactor) admission(f *flight, d *AdmissionDecision, detail string) Event {
	e := Event{Kind: EventAdmission, Decision: d, Reason: detail, Policy: c.conf().PolicyName, PreTokens: int64(tokensOf(d))}
	if f != nil {
		e.AttemptID, e.Attempt = f.ID, f.Attempt
	}
	return e
}

func tokensOf(d *AdmissionDecision) uint64 {
	if d.TokensBefore == nil {
		return 0
	}
	return *d.TokensBefore
}

// launch makes a reservation durable and spawns its summarizer.
func (c *Compactor) launch(ctx context.Context, t *thread, f *flight) bool {
	t.mu.Lock()
	if t.flight != f || !c.book(t, f) {
		t.mu.Unlock()
		return false
	}
	request := &abi.SummarizeRequest{
		ThreadID: t.id, Messages: f.source(), PreviousSummary: f.Range.PreviousSummary,
		BudgetTokens: c.budget(&f.Range, f.Before), Focus: t.focus,
		ReadFiles: f.Range.ReadFiles, ModifiedFiles: f.Range.ModifiedFiles, LiveTasks: c.conf().LiveTasks(t.id),
	}
	p := &c.conf().Policy
	request.Masking = &abi.Masking{ViewTokens: f.Before, GoalTokens: p.ThresholdTokens * goalShare / 10, Never: p.NeverMask}
	if m := t.latest(); m != nil {
		request.Masking.Masked = slices.Clone(m.Masks)
	}
	t.requested, t.focus = false, ""
	scale := t.bill
	c.started(t, f)
	t.mu.Unlock()
	err := c.conf().Spawn(ctx, t.id, f.ID, TaskType, taskDescription, func(ctx context.Context) error {
		return c.summarize(ctx, t, f, request, scale)
	})
	if err == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.flight == f {
		c.fail(t, f, fmt.Sprintf("the task could not be started: %v", err), false)
	}
	return false
}

// book writes the reservation into the store, if no other process has one and the thread
// is what was planned on.
func (c *Compactor) book(t *thread, f *flight) bool {
	if c.open(t) {
		f.main, f.Policy = false, nameOf(c.conf().Fallback)
	}
	f.version = c.version()
	free := func(s *State) bool {
		latest := ""
		if n := len(s.Markers); n > 0 {
			latest = s.Markers[n-1].ID
		}
		return s.InFlight == nil && latest == f.Marker
	}
	err := c.commit(t, free, func(s *State) {
		held := f.InFlight
		s.InFlight, s.Attempts, s.LastStart, s.Undone = &held, f.Attempt, f.started, nil
	})
	if err == nil {
		return true
	}
	t.flight = nil
	f.leave()
	c.postpone(t, storePause, versionOf(c.conf().Admitter))
	c.observe(t, Event{
		Kind: EventFailed, AttemptID: f.ID, Attempt: f.Attempt, Policy: f.Policy, PreTokens: f.Before,
		Reason: fmt.Sprintf("the reservation could not be stored: %v", err),
	})
	return false
}

// goalShare is to how many tenths of the threshold masks alone must bring a view.
const goalShare = 6

// queueFactor is how many timeouts a task may wait for its turn.
const queueFactor = 4

// budget is how long a summary of the range may be: what the policy says, but never so long that it could
// not save what the policy wants saved of the view. It is 0 when no summary could.
func (c *Compactor) budget(r *Range, view int64) int64 {
	p := &c.conf().Policy
	tokens := r.Tokens
	if r.PreviousSummary != nil {
		tokens += textTokens(*r.PreviousSummary)
	}
	// A summarizer counts tokens in its own way: a fifth is left for that.
	most := (float64(tokens) - p.leastSaved(view)) * 0.8
	return max(0, min(p.SummaryTokens, int64(most)))
}

// started notes a compaction whose task is about to be spawned.
func (c *Compactor) started(t *thread, f *flight) {
	t.recent = append(t.recent, f.ID)
	if len(t.recent) > 2*maxMarkers {
		t.recent = t.recent[1:]
	}
	c.observe(t, Event{
		Kind: EventStarted, TaskID: f.ID, AttemptID: f.ID, Attempt: f.Attempt, Policy: f.Policy,
		FromID: f.Range.FromID, ToID: f.Range.ToID, PreTokens: f.Range.Tokens, Messages: len(f.source()),
	})
}
