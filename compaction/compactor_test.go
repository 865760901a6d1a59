package compaction_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/compaction"
)

// post is a thread's inbox behind a real task manager.
type post struct {
	*background.Manager
	box chan abi.Notice
}

func newPost(t *testing.T) *post {
	t.Helper()
	box := make(chan abi.Notice, 16)
	m, err := background.New(background.Config{Deliver: func(ctx context.Context, _ string, n abi.Notice) error {
		select {
		case box <- n:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return &post{Manager: m, box: box}
}

func (p *post) close(t *testing.T) {
	t.Helper()
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCompactor has one subtest for each behaviour that the design takes over,
// by its name there.
func TestCompactor(t *testing.T) {
	t.Parallel()
	behaviours := map[string]func(*testing.T){
		"maybe_spawn_compaction_emits_event_after_summary_completes":  emitsEvent,
		"maybe_spawn_compaction_no_op_without_background_manager":     withoutManager,
		"maybe_spawn_compaction_no_op_without_summarizer":             withoutSummarizer,
		"maybe_spawn_compaction_no_op_when_no_useful_boundary":        noBoundary,
		"round_trip_swap_completes_after_event_drained":               roundTrip,
		"round_trip_failure_clears_in_flight":                         roundTripFailure,
		"background_summarizer_uses_snapshot_not_live_messages":       snapshot,
		"previous_summary_is_passed_to_summarizer_on_subsequent_pass": previousSummary,
		"try_consume_compaction_event_handles_malformed_payload":      malformedPayload,

		"fresh_worker_can_start":                                                      freshThread,
		"cannot_start_while_pending":                                                  whilePending,
		"cannot_start_during_cooldown":                                                duringCooldown,
		"can_start_after_cooldown":                                                    afterCooldown,
		"max_attempts_blocks_start":                                                   maxAttempts,
		"compaction_admission_reports_session_attempt_limit":                          maxAttempts,
		"compaction_admission_reports_cooldown":                                       duringCooldown,
		"compaction_admission_reports_no_preparation_when_transcript_below_threshold": noPreparation,
		"compaction_admission_allows_prepared_workload_without_degraded_signals":      preparedWorkload,
		"compaction_admission_reports_memory_pressure":                                memoryPressure,
		"compaction_admission_reports_provider_degraded_for_stale_or_slow_metrics":    providerDegraded,
		"compaction_admission_reports_queue_saturated":                                queueSaturated,
		"compaction_admission_priority_prefers_existing_work_and_quotas":              priority,
		"compaction_admission_multi_session_fixture_bounds_started_compactions":       multiSession,
		"try_recv_none_when_no_pending":                                               nothingPending,
		"try_recv_none_when_not_ready":                                                notReady,
		"dropping_worker_aborts_pending_task":                                         closingAborts,
		"try_recv_timeout":                                                            timeout,
		"try_recv_success":                                                            success,
	}
	for name, run := range behaviours {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t)
		})
	}
}

func emitsEvent(t *testing.T) {
	p := newPost(t)
	defer p.close(t)
	gate, asked := make(chan struct{}), make(chan struct{}, 2)
	d := newDesk()
	c := d.at(t, scripted(func(ctx context.Context, _ *abi.SummarizeRequest) (*abi.Summary, error) {
		asked <- struct{}{}
		<-gate
		return &abi.Summary{Text: "gated summary"}, nil
	}), func(cfg *compaction.Config) { cfg.Spawn = p.Housekeep })
	log := filler()
	if !c.Consider(t.Context(), thread, log) || !c.Pending(thread) {
		t.Fatal("nothing is in flight")
	}
	if c.Consider(t.Context(), thread, log) {
		t.Error("a second one was started")
	}
	close(gate)
	n := <-p.box
	payload, ok := n.Payload.(map[string]any)
	if !ok || n.Kind != abi.NoticeCustom || n.EventType != "context.compacted" || !n.Housekeeping ||
		payload["summary"] != "gated summary" || payload["boundary_message_id"] != "a2" {
		t.Errorf("got %+v", n)
	}
	if end := <-p.box; end.Kind != abi.NoticeCompleted || end.TaskID != n.TaskID {
		t.Errorf("got %+v", end)
	}
	if len(asked) != 1 {
		t.Errorf("the summarizer was asked %d times", len(asked))
	}
}

func withoutManager(t *testing.T) {
	c, err := compaction.New(compaction.Config{Summarizer: says("x")})
	if c != nil || err == nil || !strings.Contains(err.Error(), "Config.Spawn is missing") {
		t.Errorf("got %v, %v", c, err)
	}
}

func withoutSummarizer(t *testing.T) {
	c, err := compaction.New(compaction.Config{Spawn: newDesk().spawn})
	if c != nil || err == nil || !strings.Contains(err.Error(), "Config.Summarizer is missing") {
		t.Errorf("got %v, %v", c, err)
	}
}

func noBoundary(t *testing.T) {
	d := newDesk()
	c := d.at(t, says("x"), func(cfg *compaction.Config) { cfg.Policy.KeepRecentMessages = 5 })
	log := []abi.Message{user("u", words(1500)), assistant("a", "x")}
	if c.Consider(t.Context(), thread, log) || c.Pending(thread) || d.started() != 0 {
		t.Error("something was started")
	}
	if e := d.last(t); e.Kind != compaction.EventAdmission || e.Decision.Reason != abi.ReasonNoPreparation {
		t.Errorf("told %+v", e)
	}
}

func roundTrip(t *testing.T) {
	p := newPost(t)
	defer p.close(t)
	d := newDesk()
	c := d.at(t, says("round trip summary"), func(cfg *compaction.Config) { cfg.Spawn = p.Housekeep })
	log := filler()
	if !c.Consider(t.Context(), thread, log) {
		t.Fatal("not started")
	}
	consume(t, c, log, []abi.Notice{<-p.box, <-p.box})
	view := c.View(thread, log)
	if len(view) >= len(log) || !strings.HasPrefix(view[0].Text(), "<conversation-summary>\nround trip summary") {
		t.Errorf("the view is %v", ids(view))
	}
	if markers := c.Markers(thread); c.Pending(thread) || len(markers) != 1 || markers[0].Summary != "round trip summary" {
		t.Errorf("pending %v, markers %+v", c.Pending(thread), markers)
	}
	m, e := c.Markers(thread)[0], d.last(t)
	if e.Kind != compaction.EventSwapped || e.PreTokens != compaction.Estimate(log) || e.PostTokens != compaction.Estimate(view) ||
		e.ViewMessages != len(view) || e.Messages != 6 || m.PreTokens != e.PreTokens || m.PostTokens != e.PostTokens {
		t.Errorf("told %+v", e)
	}
	if len(log) != 7 || !reflect.DeepEqual(log, filler()) {
		t.Error("the log was changed")
	}
}

func roundTripFailure(t *testing.T) {
	p := newPost(t)
	defer p.close(t)
	d := newDesk()
	c := d.at(t, scripted(func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
		return nil, errors.New("upstream timeout")
	}), func(cfg *compaction.Config) { cfg.Spawn = p.Housekeep })
	log := filler()
	c.Consider(t.Context(), thread, log)
	n, end := <-p.box, <-p.box
	payload, ok := n.Payload.(map[string]any)
	if !ok || !c.Pending(thread) || n.EventType != "context.compaction_failed" {
		t.Fatalf("pending %v, got %+v", c.Pending(thread), n)
	}
	if reason, ok := payload["error"].(string); !ok || !strings.Contains(reason, "upstream timeout") {
		t.Errorf("got %+v", n)
	}
	consume(t, c, log, []abi.Notice{n, end})
	if c.Pending(thread) || len(c.Markers(thread)) != 0 || c.Total(thread) != 0 {
		t.Error("something is left")
	}
	if e := d.last(t); e.Kind != compaction.EventFailed || !strings.Contains(e.Reason, "upstream timeout") {
		t.Errorf("told %+v", e)
	}
}

func snapshot(t *testing.T) {
	var got *abi.SummarizeRequest
	d := newDesk()
	c := d.at(t, scripted(func(_ context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
		got = r
		return &abi.Summary{Text: "short"}, nil
	}), nil)
	log := filler()
	c.Consider(t.Context(), thread, log)
	log = append(log, user("late", "after the spawn"))
	d.run()
	if got == nil || !slices.Equal(ids(got.Messages), ids(filler())[:6]) {
		t.Errorf("asked to summarize %+v", got)
	}
	if len(log) != 8 {
		t.Error("the log was changed")
	}
}

func previousSummary(t *testing.T) {
	var got []*string
	d := newDesk()
	c := d.at(t, scripted(func(_ context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
		got = append(got, r.PreviousSummary)
		return &abi.Summary{Text: "First pass summary text"}, nil
	}), nil)
	log := filler()
	for i := range 2 {
		if !c.Consider(t.Context(), thread, log) {
			t.Fatalf("pass %d was not started", i)
		}
		consume(t, c, log, d.run())
		log = append(log, assistant(fmt.Sprintf("more%d", i), words(1500)), user(fmt.Sprintf("next%d", i), "go on"))
	}
	if len(got) != 2 || got[0] != nil || got[1] == nil || *got[1] != "First pass summary text" {
		t.Errorf("got %v", got)
	}
}

func malformedPayload(t *testing.T) {
	d := newDesk()
	c := d.at(t, says("short"), nil)
	log := filler()
	for i, payload := range []any{nil, "text", map[string]any{}, map[string]any{"reservation": 7}, []any{}} {
		d.pass(time.Hour)
		if !c.Consider(t.Context(), thread, log) {
			t.Fatalf("payload %d: not started", i)
		}
		task := d.last(t).TaskID
		n := abi.Notice{Kind: abi.NoticeCustom, TaskID: task, EventType: compaction.EventTypeCompacted, Payload: payload}
		if !c.Consume(thread, log, n) {
			t.Errorf("payload %d was not consumed", i)
		}
		if c.Pending(thread) || len(c.Markers(thread)) != 0 || !reflect.DeepEqual(c.View(thread, log), filler()) {
			t.Errorf("payload %d left something", i)
		}
		if e := d.last(t); e.Kind != compaction.EventFailed || !strings.Contains(e.Reason, "no result") {
			t.Errorf("payload %d: told %+v", i, e)
		}
	}
}

func freshThread(t *testing.T) {
	d := newDesk()
	if !d.at(t, says("x"), nil).Consider(t.Context(), thread, filler()) || !d.events[0].Decision.Allowed {
		t.Errorf("told %+v", d.events)
	}
}

func whilePending(t *testing.T) {
	d := newDesk()
	c := d.at(t, says("x"), nil)
	c.Consider(t.Context(), thread, filler())
	for range 3 {
		if c.Consider(t.Context(), thread, filler()) {
			t.Error("started twice")
		}
	}
	if !c.Pending(thread) || d.started() != 1 {
		t.Errorf("%d started", d.started())
	}
	if !c.Consider(t.Context(), "thread-2", filler()) {
		t.Error("another thread was held up")
	}
	consume(t, c, filler(), d.run()[:2])
	if e := d.last(t); e.StepsMeanwhile != 3 {
		t.Errorf("%d steps meanwhile", e.StepsMeanwhile)
	}
}

// cooling is a thread that was compacted just now and is full again.
func cooling(t *testing.T, cooldown time.Duration) (*desk, *compaction.Compactor, []abi.Message) {
	t.Helper()
	d := newDesk()
	c := d.at(t, says("short"), func(cfg *compaction.Config) { cfg.Quota.Cooldown = cooldown })
	log := filler()
	if !c.Consider(t.Context(), thread, log) {
		t.Fatal("not started")
	}
	consume(t, c, log, d.run())
	return d, c, append(log, assistant("more", words(1500)), user("next", "go on"))
}

func duringCooldown(t *testing.T) {
	d, c, log := cooling(t, time.Hour)
	d.pass(time.Hour - time.Millisecond)
	if c.Consider(t.Context(), thread, log) {
		t.Error("started")
	}
	if e := d.last(t); e.Decision.Reason != abi.ReasonCooldown || e.Decision.CooldownRemainingMS != 1 || e.Decision.TokensBefore == nil {
		t.Errorf("decided %+v", e.Decision)
	}
}

func afterCooldown(t *testing.T) {
	d, c, log := cooling(t, time.Second)
	d.pass(time.Second)
	if !c.Consider(t.Context(), thread, log) {
		t.Errorf("decided %+v", d.last(t).Decision)
	}
	_, c, log = cooling(t, 0)
	if !c.Consider(t.Context(), thread, log) {
		t.Error("not started without a cooldown")
	}
}

func maxAttempts(t *testing.T) {
	d, fails := newDesk(), true
	c := d.at(t, scripted(func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
		if fails {
			return nil, errors.New("no")
		}
		return &abi.Summary{Text: "short"}, nil
	}), func(cfg *compaction.Config) { cfg.Quota.MaxAttempts = 2 })
	log := filler()
	attempt := func() bool {
		d.pass(time.Hour)
		started := c.Consider(t.Context(), thread, log)
		for _, n := range d.run() {
			c.Consume(thread, log, n)
		}
		return started
	}
	// A success begins the count anew.
	if !attempt() {
		t.Fatal("attempt 1 was not started")
	}
	fails = false
	if !attempt() || c.Total(thread) != 1 {
		t.Fatal("attempt 2 was not started")
	}
	c.Undo(thread)
	fails = true
	for i := range 2 {
		if !attempt() {
			t.Fatalf("attempt %d was not started", i+3)
		}
	}
	if attempt() {
		t.Error("a third attempt without a success was started")
	}
	if e := d.last(t).Decision; e == nil || e.Reason != abi.ReasonAttemptLimit || e.AttemptCount != 2 || e.MaxAttemptsPerSession != 2 {
		t.Errorf("decided %+v", e)
	}
}

func noPreparation(t *testing.T) {
	d := newDesk()
	c := d.at(t, says("x"), nil)
	log := []abi.Message{user("u", "hi"), assistant("a", "ho")}
	if c.Consider(t.Context(), thread, log) || len(d.events) != 0 {
		t.Fatalf("below the threshold: told %+v", d.events)
	}
	c.Request(thread, "tests")
	if c.Consider(t.Context(), thread, log) {
		t.Error("started")
	}
	if e := d.last(t).Decision; e.Reason != abi.ReasonNoPreparation || e.TokensBefore != nil || e.Allowed {
		t.Errorf("decided %+v", e)
	}
	// The request is answered: it must not fire by surprise later.
	log = append(log, assistant("b", words(900)), user("u2", "go on"))
	if c.Consider(t.Context(), thread, log) || len(d.events) != 1 {
		t.Errorf("told %+v", d.events)
	}
}

func preparedWorkload(t *testing.T) {
	d := newDesk()
	c := d.at(t, says("x"), func(cfg *compaction.Config) { cfg.Policy = compaction.Policy{} })
	log := []abi.Message{system("s", "x"), assistant("a", strings.Repeat("a ", 180_986)), user("u", strings.Repeat("b ", 22_398))}
	if n := compaction.Estimate(log); n != 180_000 {
		t.Fatalf("the fixture has %d tokens", n)
	}
	if !c.Consider(t.Context(), thread, log) {
		t.Error("not started")
	}
	if e := d.events[0].Decision; !e.Allowed || e.Reason != abi.ReasonAllowed || e.TokensBefore == nil || *e.TokensBefore != 180_000 {
		t.Errorf("decided %+v", e)
	}
}

// refused asks a fresh thread with signals that must block.
func refused(t *testing.T, signals abi.Signals, want string) {
	t.Helper()
	d := newDesk()
	c := d.at(t, says("x"), func(cfg *compaction.Config) { cfg.Signals = func() abi.Signals { return signals } })
	if c.Consider(t.Context(), thread, filler()) || c.Pending(thread) {
		t.Error("started")
	}
	if e := d.last(t).Decision; e.Allowed || e.Reason != want || e.TokensBefore == nil {
		t.Errorf("decided %+v", e)
	}
}

func memoryPressure(t *testing.T) {
	refused(t, abi.Signals{Memory: &abi.MemorySignal{AvailableBytes: new(int64(256 * mib)), RequiredHeadroomBytes: 512 * mib}}, abi.ReasonMemoryPressure)
}

func providerDegraded(t *testing.T) {
	for _, p := range []abi.ProviderSignal{
		{Stale: true},
		{P95LatencyMS: new(int64(8000)), MaxP95LatencyMS: new(int64(5000))},
		{ErrorRatePerMille: new(int64(75)), MaxErrorRatePerMille: new(int64(50))},
	} {
		refused(t, abi.Signals{Provider: &p}, abi.ReasonProviderDegraded)
	}
}

func queueSaturated(t *testing.T) {
	refused(t, abi.Signals{Queue: &abi.QueueSignal{QueuedRequests: 4, MaxQueuedRequests: 4}}, abi.ReasonQueueSaturated)
}

func priority(t *testing.T) {
	r := request(pressed)
	r.Pending = true
	if got := compaction.Decide(r); got != abi.ReasonPending {
		t.Errorf("decided %s", got)
	}
}

func multiSession(t *testing.T) {
	d := newDesk()
	var decisions []compaction.AdmissionDecision
	c := d.at(t, says("x"), func(cfg *compaction.Config) {
		cfg.Signals = func() abi.Signals {
			return abi.Signals{Queue: &abi.QueueSignal{QueuedRequests: int64(d.started()), MaxQueuedRequests: 2}}
		}
		cfg.Observe = func(e compaction.Event) {
			if e.Kind == compaction.EventAdmission {
				decisions = append(decisions, *e.Decision)
			}
		}
	})
	for i := range 5 {
		c.Consider(t.Context(), fmt.Sprintf("session-%d", i), filler())
	}
	e := compaction.Evidence(decisions, 4, 7)
	if e.Schema != "pi.compaction.admission.v1" || e.DecisionCount != 5 || e.AdmittedCount != 2 || e.RejectedCount != 3 ||
		!reflect.DeepEqual(e.RejectedByReason, map[string]int{abi.ReasonQueueSaturated: 3}) ||
		e.ForegroundImpact.P95MS != 4 || e.ForegroundImpact.P99MS != 7 || d.started() != 2 {
		t.Errorf("%d started, evidence %+v", d.started(), e)
	}
}

func nothingPending(t *testing.T) {
	d := newDesk()
	c := d.at(t, says("x"), nil)
	log := filler()
	for _, n := range []abi.Notice{
		{Kind: abi.NoticeCompleted, TaskID: "bg_1"},
		{Kind: abi.NoticeFailed}, {Kind: abi.NoticeCancelled, TaskID: "x"}, {Kind: abi.NoticeMessages}, {},
		{Kind: abi.NoticeCustom, EventType: "progress", Payload: map[string]any{"reservation": ""}},
	} {
		if c.Consume(thread, log, n) {
			t.Errorf("%+v was consumed", n)
		}
	}
	if c.Pending(thread) || len(d.events) != 0 || !reflect.DeepEqual(c.View(thread, log), log) {
		t.Errorf("told %+v", d.events)
	}
}

func notReady(t *testing.T) {
	p := newPost(t)
	defer p.close(t)
	gate := make(chan struct{})
	c := newDesk().at(t, scripted(func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
		<-gate
		return &abi.Summary{Text: "short"}, nil
	}), func(cfg *compaction.Config) { cfg.Spawn = p.Housekeep })
	log := filler()
	c.Consider(t.Context(), thread, log)
	if !c.Pending(thread) || len(p.box) != 0 || !reflect.DeepEqual(c.View(thread, log), log) {
		t.Error("something came before it was ready")
	}
	close(gate)
	consume(t, c, log, []abi.Notice{<-p.box, <-p.box})
	if c.Pending(thread) || c.Total(thread) != 1 {
		t.Error("what came in the end was lost")
	}
}

// hangs waits for the end of its context.
func hangs(aborted *bool) scripted {
	return func(ctx context.Context, _ *abi.SummarizeRequest) (*abi.Summary, error) {
		<-ctx.Done()
		*aborted = true
		return nil, ctx.Err()
	}
}

func closingAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, aborted := newPost(t), false
		c := newDesk().at(t, hangs(&aborted), func(cfg *compaction.Config) { cfg.Spawn = p.Housekeep })
		log := filler()
		c.Consider(t.Context(), thread, log)
		synctest.Wait()
		p.close(t)
		if !aborted {
			t.Error("the summarizer was not told")
		}
		for len(p.box) > 0 {
			c.Consume(thread, log, <-p.box)
		}
		if c.Pending(thread) {
			t.Error("the reservation was kept")
		}
	})
}

func timeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d, aborted := newPost(t), newDesk(), false
		defer p.close(t)
		c := d.at(t, hangs(&aborted), func(cfg *compaction.Config) { cfg.Spawn, cfg.Now = p.Housekeep, time.Now })
		log, start := filler(), time.Now()
		c.Consider(t.Context(), thread, log)
		consume(t, c, log, []abi.Notice{<-p.box, <-p.box})
		if took := time.Since(start); took != 2*time.Minute || !aborted {
			t.Errorf("took %s, aborted %v", took, aborted)
		}
		if e := d.last(t); e.Kind != compaction.EventFailed || !strings.Contains(e.Reason, "timed out") || c.Pending(thread) {
			t.Errorf("told %+v", e)
		}
	})
}

func success(t *testing.T) {
	d := newDesk()
	c := d.at(t, says("test summary"), nil)
	log := filler()
	c.Consider(t.Context(), thread, log)
	consume(t, c, log, d.run())
	if m := c.Markers(thread); c.Pending(thread) || len(m) != 1 || m[0].Summary != "test summary" {
		t.Errorf("pending %v, markers %+v", c.Pending(thread), m)
	}
}
