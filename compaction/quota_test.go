package compaction_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// The behaviours of TestCompactor that are about what may start.

func freshThread(t *testing.T) {
	t.Helper()
	d := newDesk()
	if !d.at(t, says("x"), nil).Consider(t.Context(), thread, filler()) || !d.events[0].Decision.Allowed {
		t.Errorf("told %+v", d.events)
	}
	if e := d.events[0].Decision; e.AttemptCount != 0 || e.MaxAttemptsPerSession != 100 || e.CooldownRemainingMS != 0 {
		t.Errorf("decided %+v, want none of 100 attempts", e)
	}
}

func whilePending(t *testing.T) {
	t.Helper()
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
	consume(t, c, filler(), d.run()[:1])
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
	t.Helper()
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
	t.Helper()
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
	t.Helper()
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
	c.Request(thread, "") // an undo holds the next one back
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
	t.Helper()
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
	d = newDesk()
	c = d.at(t, says("x"), func(cfg *compaction.Config) { cfg.Policy.ThresholdTokens = 50_000 })
	c.Request(thread, "tests")
	c.Consider(t.Context(), thread, log)
	log = append(log, assistant("b", words(5000)), user("u2", "go on"))
	if c.Consider(t.Context(), thread, log) || len(d.events) != 1 {
		t.Errorf("told %+v", d.events)
	}
}

func preparedWorkload(t *testing.T) {
	t.Helper()
	d := newDesk()
	asked := 0
	c := d.at(t, says("x"), func(cfg *compaction.Config) {
		cfg.Policy = compaction.Policy{}
		cfg.Admitter = admitter(func(_ context.Context, r *abi.AdmitRequest) (*abi.Decision, error) {
			asked++
			if r.Pending || *r.TokensBefore != 180_000 {
				t.Errorf("the policy was asked %+v", r)
			}
			return &abi.Decision{Allowed: true, Reason: abi.ReasonAllowed}, nil
		})
	})
	log := []abi.Message{system("s", "x"), assistant("a", strings.Repeat("a ", 159_888)), assistant("b", "x"), user("u", strings.Repeat("b ", 20_092))}
	if n := compaction.Estimate(log); n != 180_000 {
		t.Fatalf("the fixture has %d tokens", n)
	}
	if !c.Consider(t.Context(), thread, log) {
		t.Error("not started")
	}
	if e := d.events[0].Decision; !e.Allowed || e.Reason != abi.ReasonAllowed || e.TokensBefore == nil || *e.TokensBefore != 180_000 || asked != 1 {
		t.Errorf("decided %+v, the policy was asked %d times", e, asked)
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
	t.Helper()
	refused(t, abi.Signals{Memory: &abi.MemorySignal{AvailableBytes: new(int64(256 * mib)), RequiredHeadroomBytes: 512 * mib}}, abi.ReasonMemoryPressure)
}

func providerDegraded(t *testing.T) {
	t.Helper()
	for _, p := range []abi.ProviderSignal{
		{Stale: true},
		{P95LatencyMS: new(int64(8000)), MaxP95LatencyMS: new(int64(5000))},
		{ErrorRatePerMille: new(int64(75)), MaxErrorRatePerMille: new(int64(50))},
	} {
		refused(t, abi.Signals{Provider: &p}, abi.ReasonProviderDegraded)
	}
}

func queueSaturated(t *testing.T) {
	t.Helper()
	refused(t, abi.Signals{Queue: &abi.QueueSignal{QueuedRequests: 4, MaxQueuedRequests: 4}}, abi.ReasonQueueSaturated)
}

// priority makes everything stand against a compaction at once, and takes it away
// piece by piece: work under way first, then quotas, then signals.
func priority(t *testing.T) {
	t.Helper()
	d := newDesk()
	var signals abi.Signals
	c := d.at(t, says("short"), func(cfg *compaction.Config) {
		cfg.Quota = compaction.Quota{MaxAttempts: 1, Cooldown: time.Hour, Forget: 24 * time.Hour}
		cfg.Signals = func() abi.Signals { return signals }
	})
	log := filler()
	decided := func(want string, count int) {
		t.Helper()
		if c.Consider(t.Context(), thread, log) {
			t.Fatalf("started, want %s", want)
		}
		if e := d.last(t); e.Kind != compaction.EventAdmission || e.Decision.Reason != want || e.Decision.Allowed || e.Count != count {
			t.Fatalf("told %+v %+v, want %s", e, e.Decision, want)
		}
	}
	if !c.Consider(t.Context(), thread, log) {
		t.Fatal("not started")
	}
	r := request(pressed)
	signals = r.Signals
	decided(abi.ReasonPending, 0)
	pending, attempt := d.last(t).Decision, d.last(t).AttemptID
	if attempt == "" || attempt != d.events[1].AttemptID {
		t.Errorf("the attempt under way is %q, want that of %+v", attempt, d.events[1])
	}
	if pending.TokensBefore == nil || pending.AttemptCount != 1 || pending.CooldownRemainingMS == 0 || pending.Signals.Memory == nil {
		t.Errorf("decided %+v", pending)
	}
	told := len(d.kinds())
	for range 3 { // the same again, which is counted
		c.Consider(t.Context(), thread, log)
	}
	if len(d.kinds()) != told {
		t.Errorf("told %v", d.kinds())
	}

	d.jobs = nil // the task dies without a result
	if !c.Consume(thread, log, abi.Notice{Kind: abi.NoticeFailed, TaskID: attempt, Error: "killed", Housekeeping: true}) {
		t.Fatal("the end of the task was not consumed")
	}
	decided(abi.ReasonAttemptLimit, 0)
	if e := d.events[len(d.events)-2]; e.Decision == nil || e.Decision.Reason != abi.ReasonPending || e.Count != 3 || e.AttemptID != attempt {
		t.Errorf("told %+v of the decisions while one was pending", e)
	}

	d.pass(24 * time.Hour) // the attempt no longer counts
	signals = abi.Signals{}
	if !c.Consider(t.Context(), thread, log) {
		t.Fatalf("not started: %+v", d.last(t).Decision)
	}
	signals = r.Signals
	consume(t, c, log, d.run())
	log = append(log, assistant("more", words(1500)), user("next", "go on"))
	decided(abi.ReasonCooldown, 0)
	d.pass(time.Hour)
	decided(abi.ReasonMemoryPressure, 0)
	signals.Memory = nil
	decided(abi.ReasonProviderDegraded, 0)
	signals.Provider = nil
	decided(abi.ReasonQueueSaturated, 0)
	signals.Queue = nil
	if !c.Consider(t.Context(), thread, log) {
		t.Errorf("decided %+v", d.last(t).Decision)
	}
}

func multiSession(t *testing.T) {
	t.Helper()
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
