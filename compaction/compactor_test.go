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

// passing is a ledger that passes notifications on, and keeps nothing.
type passing struct {
	background.Ledger
	give func(ctx context.Context, thread string, n abi.Notice) error
}

func (p passing) Commit(ctx context.Context, thread, _ string, _ []byte, n *abi.Notice) error {
	if n == nil {
		return nil
	}
	return p.give(ctx, thread, *n)
}

func (passing) Forget(context.Context, string, ...string) error { return nil }

func (passing) Owner() string { return "" }

// post is a thread's inbox behind a real task manager.
type post struct {
	*background.Manager
	box chan abi.Notice
}

func newPost(t *testing.T) *post {
	t.Helper()
	box := make(chan abi.Notice, 16)
	m, err := background.New(background.Config{Ledger: passing{give: func(ctx context.Context, _ string, n abi.Notice) error {
		select {
		case box <- n:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}})
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
	for _, b := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"maybe_spawn_compaction_emits_event_after_summary_completes", emitsEvent},
		{"maybe_spawn_compaction_no_op_without_background_manager", withoutManager},
		{"maybe_spawn_compaction_no_op_without_summarizer", withoutSummarizer},
		{"maybe_spawn_compaction_no_op_when_no_useful_boundary", noBoundary},
		{"round_trip_swap_completes_after_event_drained", roundTrip},
		{"round_trip_failure_clears_in_flight", roundTripFailure},
		{"background_summarizer_uses_snapshot_not_live_messages", snapshot},
		{"previous_summary_is_passed_to_summarizer_on_subsequent_pass", previousSummary},
		{"try_consume_compaction_event_handles_malformed_payload", malformedPayload},
		{"compaction_in_flight_serde_roundtrips", inFlightRoundTrip},
		{"fresh_worker_can_start", freshThread},
		{"cannot_start_while_pending", whilePending},
		{"cannot_start_during_cooldown", duringCooldown},
		{"can_start_after_cooldown", afterCooldown},
		{"max_attempts_blocks_start", maxAttempts},
		{"compaction_admission_reports_session_attempt_limit", maxAttempts},
		{"compaction_admission_reports_cooldown", duringCooldown},
		{"compaction_admission_reports_no_preparation_when_transcript_below_threshold", noPreparation},
		{"compaction_admission_allows_prepared_workload_without_degraded_signals", preparedWorkload},
		{"compaction_admission_reports_memory_pressure", memoryPressure},
		{"compaction_admission_reports_provider_degraded_for_stale_or_slow_metrics", providerDegraded},
		{"compaction_admission_reports_queue_saturated", queueSaturated},
		{"compaction_admission_priority_prefers_existing_work_and_quotas", priority},
		{"compaction_admission_multi_session_fixture_bounds_started_compactions", multiSession},
		{"try_recv_none_when_no_pending", nothingPending},
		{"try_recv_none_when_not_ready", notReady},
		{"dropping_worker_aborts_pending_task", closingAborts},
		{"try_recv_timeout", timeout},
		{"try_recv_success", success},
	} {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			b.run(t)
		})
	}
}

func emitsEvent(t *testing.T) {
	t.Helper()
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
	if want := (abi.Notice{Kind: abi.NoticeCompleted, TaskID: d.last(t).AttemptID, Housekeeping: true}); !reflect.DeepEqual(n, want) {
		t.Errorf("got %+v", n)
	}
	if !c.Consume(thread, log, n) || d.last(t).Kind != compaction.EventSwapped || c.Markers(thread)[0].Summary != "gated summary" {
		t.Errorf("told %+v", d.last(t))
	}
	if len(asked) != 1 {
		t.Errorf("the summarizer was asked %d times", len(asked))
	}
}

func withoutManager(t *testing.T) {
	t.Helper()
	c, err := compaction.New(compaction.Config{Summarizer: says("x")})
	if c != nil || err == nil || !strings.Contains(err.Error(), "Config.Spawn is missing") {
		t.Errorf("got %v, %v", c, err)
	}
}

func withoutSummarizer(t *testing.T) {
	t.Helper()
	d := newDesk()
	c, log := d.at(t, nil, func(cfg *compaction.Config) { cfg.PolicyName = "" }), filler()
	if !c.Consider(t.Context(), thread, log) {
		t.Fatalf("not started: %+v", d.last(t))
	}
	consume(t, c, log, d.run())
	if m := c.Markers(thread); len(m) != 1 || m[0].Policy != "ledger" || !strings.HasPrefix(m[0].Summary, "State after message m") {
		t.Errorf("got %+v", m)
	}
}

func noBoundary(t *testing.T) {
	t.Helper()
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
	t.Helper()
	p := newPost(t)
	defer p.close(t)
	d := newDesk()
	c := d.at(t, says("round trip summary"), func(cfg *compaction.Config) { cfg.Spawn = p.Housekeep })
	log := filler()
	if !c.Consider(t.Context(), thread, log) {
		t.Fatal("not started")
	}
	consume(t, c, log, []abi.Notice{<-p.box})
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
	t.Helper()
	p := newPost(t)
	defer p.close(t)
	d := newDesk()
	c := d.at(t, scripted(func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
		return nil, errors.New("upstream timeout")
	}), func(cfg *compaction.Config) { cfg.Spawn = p.Housekeep })
	log := filler()
	c.Consider(t.Context(), thread, log)
	n := <-p.box
	if !c.Pending(thread) || n.Kind != abi.NoticeFailed {
		t.Fatalf("pending %v, got %+v", c.Pending(thread), n)
	}
	consume(t, c, log, []abi.Notice{n})
	if c.Pending(thread) || len(c.Markers(thread)) != 0 || c.Total(thread) != 0 {
		t.Error("something is left")
	}
	if e := d.last(t); e.Kind != compaction.EventFailed || !strings.Contains(e.Reason, "upstream timeout") {
		t.Errorf("told %+v", e)
	}
}

func snapshot(t *testing.T) {
	t.Helper()
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
	t.Helper()
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

// Results do not come in notifications: no payload changes anything, and the end of a task without a result is a failure.
func malformedPayload(t *testing.T) {
	t.Helper()
	d := newDesk()
	c := d.at(t, says("short"), nil)
	log := filler()
	for i, payload := range []any{nil, "text", map[string]any{}, map[string]any{"summary": "forged"}, []any{}} {
		d.pass(time.Hour)
		if !c.Consider(t.Context(), thread, log) {
			t.Fatalf("payload %d: not started", i)
		}
		task := d.last(t).TaskID
		for _, n := range []abi.Notice{
			{Kind: abi.NoticeCustom, TaskID: task, EventType: "context.compacted", Payload: payload},
			{Kind: abi.NoticeCompleted, TaskID: "bg_of_another", Result: payload},
		} {
			if c.Consume(thread, log, n) || !c.Pending(thread) {
				t.Errorf("payload %d changed something: %+v", i, d.last(t))
			}
		}
		if !c.Consume(thread, log, abi.Notice{Kind: abi.NoticeCompleted, TaskID: task, Result: payload}) {
			t.Errorf("payload %d: the end was not consumed", i)
		}
		if c.Pending(thread) || len(c.Markers(thread)) != 0 || !reflect.DeepEqual(c.View(thread, log), filler()) {
			t.Errorf("payload %d left something", i)
		}
		if e := d.last(t); e.Kind != compaction.EventFailed || !strings.Contains(e.Reason, "without a result") {
			t.Errorf("payload %d: told %+v", i, e)
		}
	}
}

func nothingPending(t *testing.T) {
	t.Helper()
	d := newDesk()
	c := d.at(t, says("x"), nil)
	log := filler()
	for _, n := range []abi.Notice{
		{Kind: abi.NoticeCompleted, TaskID: "bg_1"},
		{Kind: abi.NoticeFailed},
		{Kind: abi.NoticeCancelled, TaskID: "x"},
		{Kind: abi.NoticeMessages},
		{},
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
	t.Helper()
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
	consume(t, c, log, []abi.Notice{<-p.box})
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
	t.Helper()
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
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p, d, aborted := newPost(t), newDesk(), false
		defer p.close(t)
		c := d.at(t, hangs(&aborted), func(cfg *compaction.Config) { cfg.Spawn, cfg.Now = p.Housekeep, time.Now })
		log, start := filler(), time.Now()
		c.Consider(t.Context(), thread, log)
		consume(t, c, log, []abi.Notice{<-p.box})
		if took := time.Since(start); took != 2*time.Minute || !aborted {
			t.Errorf("took %s, aborted %v", took, aborted)
		}
		if e := d.last(t); e.Kind != compaction.EventFailed || !strings.Contains(e.Reason, "timed out") || c.Pending(thread) {
			t.Errorf("told %+v", e)
		}
	})
}

func success(t *testing.T) {
	t.Helper()
	d := newDesk()
	c := d.at(t, says("test summary"), nil)
	log := filler()
	c.Consider(t.Context(), thread, log)
	consume(t, c, log, d.run())
	if m := c.Markers(thread); c.Pending(thread) || len(m) != 1 || m[0].Summary != "test summary" {
		t.Errorf("pending %v, markers %+v", c.Pending(thread), m)
	}
}
