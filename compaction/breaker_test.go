package compaction_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// fixed is an error that reports whether it is worth trying again.
type fixed struct{ retryable bool }

func (fixed) Error() string     { return "the provider said no" }
func (e fixed) Retryable() bool { return e.retryable }

// breaking is a compactor whose summarizer fails as the test says, and whose
// breaker opens after three failures in a row.
func breaking(t *testing.T, d *desk, failure func() error) *compaction.Compactor {
	t.Helper()
	return d.at(t, scripted(func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
		if err := failure(); err != nil {
			return nil, err
		}
		return &abi.Summary{Text: "short"}, nil
	}), func(cfg *compaction.Config) { cfg.Policy.BreakerFailures = 3 })
}

// attempt runs one compaction and returns who wrote, and how it ended.
func attempt(t *testing.T, d *desk, c *compaction.Compactor, log []abi.Message) (string, compaction.EventKind) {
	t.Helper()
	if !c.Consider(t.Context(), thread, log) {
		t.Fatalf("not started: %+v", d.last(t).Decision)
	}
	policy := d.last(t).Policy
	consume(t, c, log, d.run())
	kinds := slices.DeleteFunc(d.kinds(), func(k compaction.EventKind) bool { return k == compaction.EventBreaker })
	return policy, kinds[len(kinds)-1]
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	d, failure := newDesk(), errors.New("unreachable")
	c := breaking(t, d, func() error { return failure })
	log := filler()
	expect := func(policy string, kind compaction.EventKind) {
		t.Helper()
		if p, k := attempt(t, d, c, log); p != policy || k != kind {
			t.Fatalf("%s wrote, and it was %s; want %s and %s", p, k, policy, kind)
		}
	}
	for range 3 {
		d.pass(10 * time.Second)
		expect("scripted", compaction.EventFailed)
	}
	if e := d.last(t); e.Kind != compaction.EventBreaker || !strings.Contains(e.Reason, "3 times in a row") || e.Policy != "ledger" {
		t.Fatalf("told %+v", e)
	}
	// The fallback writes, and the view is compacted.
	d.pass(4 * time.Second)
	expect("ledger", compaction.EventSwapped)
	if m := c.Markers(thread); len(m) != 1 || m[0].Policy != "ledger" || m[0].Quality.Savings < 0.3 {
		t.Fatalf("markers %+v", m)
	}
	// After a minute the summarizer gets one try; failing again keeps the breaker open for two.
	c.Undo(thread)
	c.Request(thread, "") // an undo holds the next one back
	d.pass(time.Minute)
	expect("scripted", compaction.EventFailed)
	d.pass(90 * time.Second)
	expect("ledger", compaction.EventSwapped)
	c.Undo(thread)
	c.Request(thread, "") // an undo holds the next one back
	d.pass(time.Minute)
	failure = nil
	expect("scripted", compaction.EventSwapped)
	// A success closes it: it takes three again.
	c.Undo(thread)
	c.Request(thread, "") // an undo holds the next one back
	failure = errors.New("again")
	for range 2 {
		expect("scripted", compaction.EventFailed)
		d.pass(time.Minute)
	}
	expect("scripted", compaction.EventFailed)
}

// A failure that will be the same next time is not tried three times; one that may
// pass is.
func TestPermanentFailure(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err  error
		want string
	}{
		{fixed{retryable: false}, "ledger"},
		{fmt.Errorf("wrapped: %w", fixed{retryable: false}), "ledger"},
		{fixed{retryable: true}, "scripted"},
		{errors.New("unknown"), "scripted"},
	} {
		d := newDesk()
		c := breaking(t, d, func() error { return tc.err })
		attempt(t, d, c, filler())
		i := slices.Index(d.kinds(), compaction.EventFailed)
		if e := d.events[i]; e.Permanent != (tc.want == "ledger") || !strings.Contains(e.Reason, tc.err.Error()) {
			t.Errorf("%v: told %+v", tc.err, e)
		}
		d.pass(time.Second)
		if policy, _ := attempt(t, d, c, filler()); policy != tc.want {
			t.Errorf("%v: then %s wrote, want %s", tc.err, policy, tc.want)
		}
	}
}

// What was learnt of a summarizer outlives the process.
func TestBreakerIsDurable(t *testing.T) {
	t.Parallel()
	d, memory, log := newDesk(), compaction.NewMemory(), filler()
	broken := scripted(func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) { return nil, fixed{} })
	change := func(cfg *compaction.Config) { cfg.Store, cfg.Policy.BreakerFailures = memory, 3 }
	attempt(t, d, d.at(t, broken, change), log)
	d.pass(time.Second)
	if policy, _ := attempt(t, d, d.at(t, broken, change), log); policy != "ledger" {
		t.Errorf("%s wrote", policy)
	}
}

// A limiter is shared: of a hundred threads as many start as it has places, each
// refusal has a reason, and a place is free again however a compaction ends.
func TestLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		defer p.close(t)
		limiter, gate := compaction.NewLimiter(3), make(chan struct{})
		summarizer := scripted(func(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
			<-gate
			switch r.ThreadID {
			case "thread-0":
				return nil, errors.New("failed")
			case "thread-1":
				panic("boom")
			}
			return &abi.Summary{Text: "short"}, nil
		})
		var all [2]*compaction.Compactor
		var desks [2]*desk
		for i := range all {
			desks[i] = newDesk()
			all[i] = desks[i].at(t, summarizer, func(cfg *compaction.Config) {
				cfg.Limiter, cfg.Spawn = limiter, p.Housekeep
			})
		}
		log, started := filler(), 0
		for i := range 100 {
			if all[i%2].Consider(t.Context(), fmt.Sprintf("thread-%d", i), log) {
				started++
			} else if d := desks[i%2].last(t).Decision; d.Reason != abi.ReasonQueueSaturated || !d.Signals.Queue.Saturated ||
				d.Signals.Queue.QueuedRequests != 3 || d.Signals.Queue.MaxQueuedRequests != 3 {
				t.Fatalf("decided %+v", d)
			}
		}
		if started != 3 || limiter.Taken() != 3 {
			t.Errorf("%d started, %d places taken", started, limiter.Taken())
		}
		close(gate)
		synctest.Wait()
		if limiter.Taken() != 0 {
			t.Errorf("%d places are still taken", limiter.Taken())
		}
		if !all[0].Consider(t.Context(), "thread-50", log) {
			t.Errorf("decided %+v", desks[0].last(t).Decision)
		}
		synctest.Wait()
	})
}

// A refusal, a task that cannot be started and one that dies give the place back;
// a summarizer that never returns loses it in the end.
func TestLimiterPlaces(t *testing.T) {
	t.Parallel()
	limiter, log := compaction.NewLimiter(1), filler()
	d := newDesk()
	refuses := true
	c := d.at(t, says("short"), func(cfg *compaction.Config) {
		cfg.Limiter = limiter
		cfg.Admitter = admitter(func(context.Context, *abi.AdmitRequest) (*abi.Decision, error) {
			if limiter.Taken() != 0 {
				t.Error("a question takes a place")
			}
			return &abi.Decision{Allowed: !refuses, Reason: "not_today"}, nil
		})
	})
	c.Consider(t.Context(), thread, log)
	if limiter.Taken() != 0 {
		t.Error("a refusal keeps the place")
	}
	refuses = false
	c.Consider(t.Context(), thread, log)
	consume(t, c, log, []abi.Notice{{Kind: abi.NoticeCancelled, TaskID: d.last(t).TaskID}})
	if limiter.Taken() != 0 {
		t.Error("a dead task keeps the place")
	}
	// One that hangs keeps it after its deadline, since it is still at work.
	entered, gate := make(chan struct{}), make(chan struct{})
	hung := newDesk()
	h := hung.at(t, scripted(func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
		close(entered)
		<-gate
		return nil, errors.New("at last")
	}), func(cfg *compaction.Config) { cfg.Limiter = limiter })
	h.Consider(t.Context(), thread, log)
	ended := make(chan []abi.Notice)
	go func() { ended <- hung.run() }()
	<-entered
	hung.pass(3 * time.Minute)
	h.Consider(t.Context(), thread, log)
	if h.Pending(thread) || limiter.Taken() != 1 {
		t.Errorf("pending %v, %d taken", h.Pending(thread), limiter.Taken())
	}
	d.pass(time.Hour)
	if !c.Consider(t.Context(), "thread-2", log) || limiter.Taken() != 1 {
		t.Errorf("one that never returns holds the place for ever: %+v", d.last(t).Decision)
	}
	close(gate)
	<-ended
}

// A summarizer is notified when its compaction was abandoned.
func TestGivenUpIsCancelled(t *testing.T) {
	t.Parallel()
	d := newDesk()
	entered, cause := make(chan struct{}), make(chan error, 1)
	c := d.at(t, scripted(func(ctx context.Context, _ *abi.SummarizeRequest) (*abi.Summary, error) {
		close(entered)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil, ctx.Err()
	}), nil)
	log := filler()
	c.Consider(t.Context(), thread, log)
	ended := make(chan []abi.Notice)
	go func() { ended <- d.run() }()
	<-entered
	d.pass(3 * time.Minute)
	c.Consider(t.Context(), thread, log)
	if err := <-cause; err == nil || !strings.Contains(err.Error(), "given up: timed out") {
		t.Errorf("told %v", err)
	}
	consume(t, c, log, <-ended)
}
