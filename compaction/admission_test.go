package compaction_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

const mib = 1 << 20

func request(change func(*abi.AdmitRequest)) *abi.AdmitRequest {
	r := &abi.AdmitRequest{TokensBefore: new(int64(180_000)), MaxAttempts: 100}
	if change != nil {
		change(r)
	}
	return r
}

func pressed(r *abi.AdmitRequest) {
	r.Signals = abi.Signals{
		Memory:   &abi.MemorySignal{Pressure: true},
		Provider: &abi.ProviderSignal{Degraded: true},
		Queue:    &abi.QueueSignal{Saturated: true},
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	memory := func(available *int64, required int64) func(*abi.AdmitRequest) {
		return func(r *abi.AdmitRequest) {
			r.Signals.Memory = &abi.MemorySignal{AvailableBytes: available, RequiredHeadroomBytes: required}
		}
	}
	provider := func(p abi.ProviderSignal) func(*abi.AdmitRequest) {
		return func(r *abi.AdmitRequest) { r.Signals.Provider = &p }
	}
	queue := func(q abi.QueueSignal) func(*abi.AdmitRequest) {
		return func(r *abi.AdmitRequest) { r.Signals.Queue = &q }
	}
	for _, tc := range []struct {
		name   string
		change func(*abi.AdmitRequest)
		want   string
	}{
		{"no signals", nil, abi.ReasonAllowed},
		{"pending", func(r *abi.AdmitRequest) { r.Pending = true }, abi.ReasonPending},
		{"at the limit", func(r *abi.AdmitRequest) { r.AttemptCount, r.MaxAttempts = 2, 2 }, abi.ReasonAttemptLimit},
		{"below the limit", func(r *abi.AdmitRequest) { r.AttemptCount, r.MaxAttempts = 1, 2 }, abi.ReasonAllowed},
		{"cooldown", func(r *abi.AdmitRequest) { r.CooldownRemainingMS = 1 }, abi.ReasonCooldown},
		{"nothing prepared", func(r *abi.AdmitRequest) { r.TokensBefore = nil }, abi.ReasonNoPreparation},
		{"memory: pressure", func(r *abi.AdmitRequest) { r.Signals.Memory = &abi.MemorySignal{Pressure: true} }, abi.ReasonMemoryPressure},
		{"memory: too little", memory(new(int64(256*mib)), 512*mib), abi.ReasonMemoryPressure},
		{"memory: just enough", memory(new(int64(512*mib)), 512*mib), abi.ReasonAllowed},
		{"memory: unknown", memory(nil, 512*mib), abi.ReasonAllowed},
		{"provider: stale", provider(abi.ProviderSignal{Stale: true}), abi.ReasonProviderDegraded},
		{"provider: degraded", provider(abi.ProviderSignal{Degraded: true}), abi.ReasonProviderDegraded},
		{"provider: slow", provider(abi.ProviderSignal{P95LatencyMS: new(int64(8000)), MaxP95LatencyMS: new(int64(5000))}), abi.ReasonProviderDegraded},
		{"provider: at the latency", provider(abi.ProviderSignal{P95LatencyMS: new(int64(5000)), MaxP95LatencyMS: new(int64(5000))}), abi.ReasonAllowed},
		{"provider: no latency", provider(abi.ProviderSignal{MaxP95LatencyMS: new(int64(5000))}), abi.ReasonAllowed},
		{"provider: no limit", provider(abi.ProviderSignal{P95LatencyMS: new(int64(5000))}), abi.ReasonAllowed},
		{"provider: errors", provider(abi.ProviderSignal{ErrorRatePerMille: new(int64(75)), MaxErrorRatePerMille: new(int64(50))}), abi.ReasonProviderDegraded},
		{"queue: saturated", queue(abi.QueueSignal{Saturated: true}), abi.ReasonQueueSaturated},
		{"queue: full", queue(abi.QueueSignal{QueuedRequests: 4, MaxQueuedRequests: 4}), abi.ReasonQueueSaturated},
		{"queue: one place", queue(abi.QueueSignal{QueuedRequests: 3, MaxQueuedRequests: 4}), abi.ReasonAllowed},
		{"queue: no limit", queue(abi.QueueSignal{QueuedRequests: math.MaxInt64}), abi.ReasonAllowed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := compaction.Decide(request(tc.change)); got != tc.want {
				t.Errorf("decided %s, want %s", got, tc.want)
			}
		})
	}
}

// Everything that blocks is true at first, and is taken away from the top.
func TestDecidePriority(t *testing.T) {
	t.Parallel()
	r := request(pressed)
	r.Pending, r.AttemptCount, r.CooldownRemainingMS, r.TokensBefore = true, 100, 5, nil
	for _, step := range []struct {
		want   string
		remedy func()
	}{
		{abi.ReasonPending, func() { r.Pending = false }},
		{abi.ReasonAttemptLimit, func() { r.AttemptCount = 0 }},
		{abi.ReasonCooldown, func() { r.CooldownRemainingMS = 0 }},
		{abi.ReasonNoPreparation, func() { r.TokensBefore = new(int64(1)) }},
		{abi.ReasonMemoryPressure, func() { r.Signals.Memory = nil }},
		{abi.ReasonProviderDegraded, func() { r.Signals.Provider = nil }},
		{abi.ReasonQueueSaturated, func() { r.Signals.Queue = nil }},
		{abi.ReasonAllowed, func() {}},
	} {
		if got := compaction.Decide(r); got != step.want {
			t.Fatalf("decided %s, want %s", got, step.want)
		}
		step.remedy()
	}
}

// admitter is a policy that a test writes.
type admitter func(ctx context.Context, r *abi.AdmitRequest) (*abi.Decision, error)

func (f admitter) Admit(ctx context.Context, r *abi.AdmitRequest) (*abi.Decision, error) {
	return f(ctx, r)
}

func TestAdmissionDecisionJSON(t *testing.T) {
	t.Parallel()
	decide := func(t *testing.T, signals abi.Signals, log []abi.Message) string {
		t.Helper()
		d := newDesk()
		c := d.at(t, says("short"), func(cfg *compaction.Config) {
			cfg.Signals = func() abi.Signals { return signals }
			cfg.Quota.MaxAttempts = 7
		})
		c.Request(thread, "")
		c.Consider(t.Context(), thread, log)
		out, err := json.Marshal(d.events[0].Decision)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	t.Run("nothing known", func(t *testing.T) {
		t.Parallel()
		want := `{"schema":"pi.compaction.admission.v1","allowed":false,"reason":"no_preparation","tokensBefore":null,` +
			`"attemptCount":0,"maxAttemptsPerSession":7,"cooldownRemainingMs":0,` +
			`"signals":{"memory":null,"provider":null,"queue":{"queuedRequests":0,"maxQueuedRequests":4,"saturated":false}}}`
		if got := decide(t, abi.Signals{}, nil); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
	t.Run("everything known", func(t *testing.T) {
		t.Parallel()
		log := filler()
		want := fmt.Sprintf(`{"schema":"pi.compaction.admission.v1","allowed":false,"reason":"memory_pressure","tokensBefore":%d,`+
			`"attemptCount":0,"maxAttemptsPerSession":7,"cooldownRemainingMs":0,"signals":{`+
			`"memory":{"availableBytes":1,"requiredHeadroomBytes":2,"pressure":false},`+
			`"provider":{"p95LatencyMs":3,"maxP95LatencyMs":4,"errorRatePerMille":null,"maxErrorRatePerMille":null,"stale":false,"degraded":true},`+
			`"queue":{"queuedRequests":5,"maxQueuedRequests":6,"saturated":false}}}`, compaction.Estimate(log))
		got := decide(t, abi.Signals{
			Memory:   &abi.MemorySignal{AvailableBytes: new(int64(1)), RequiredHeadroomBytes: 2},
			Provider: &abi.ProviderSignal{P95LatencyMS: new(int64(3)), MaxP95LatencyMS: new(int64(4)), Degraded: true},
			Queue:    &abi.QueueSignal{QueuedRequests: 5, MaxQueuedRequests: 6},
		}, log)
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

func TestEvidence(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(compaction.Evidence(nil, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"schema":"pi.compaction.admission.v1","decisionCount":0,"admittedCount":0,"rejectedCount":0,"rejectedByReason":{},` +
		`"foregroundImpact":{"source":"deterministic_fixture","p95Ms":1,"p99Ms":2},"decisions":[]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	decisions := []compaction.AdmissionDecision{
		{Schema: compaction.AdmissionSchema, Reason: "queue_saturated"},
		{Schema: compaction.AdmissionSchema, Allowed: true, Reason: "allowed"},
		{Schema: compaction.AdmissionSchema, Reason: "cooldown"},
		{Schema: compaction.AdmissionSchema, Reason: "queue_saturated"},
	}
	if got, err = json.Marshal(compaction.Evidence(decisions, 4, 7)); err != nil {
		t.Fatal(err)
	}
	one := func(allowed bool, reason string) string {
		return fmt.Sprintf(`{"schema":"pi.compaction.admission.v1","allowed":%v,"reason":"%s","tokensBefore":null,"attemptCount":0,`+
			`"maxAttemptsPerSession":0,"cooldownRemainingMs":0,"signals":{"memory":null,"provider":null,"queue":null}}`, allowed, reason)
	}
	want = `{"schema":"pi.compaction.admission.v1","decisionCount":4,"admittedCount":1,"rejectedCount":3,` +
		`"rejectedByReason":{"cooldown":1,"queue_saturated":2},` +
		`"foregroundImpact":{"source":"deterministic_fixture","p95Ms":4,"p99Ms":7},"decisions":[` +
		one(false, "queue_saturated") + "," + one(true, "allowed") + "," + one(false, "cooldown") + "," + one(false, "queue_saturated") + "]}"
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPolicyAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		answer admitter
		reason string
		detail string
	}{
		{"allows", func(context.Context, *abi.AdmitRequest) (*abi.Decision, error) {
			return &abi.Decision{Allowed: true, Reason: "allowed", Detail: "go on"}, nil
		}, abi.ReasonAllowed, "go on"},
		{"refuses", func(context.Context, *abi.AdmitRequest) (*abi.Decision, error) {
			return &abi.Decision{Reason: "not_today", Detail: "it is Sunday"}, nil
		}, "not_today", "it is Sunday"},
		{"refuses as allowed", func(context.Context, *abi.AdmitRequest) (*abi.Decision, error) {
			return &abi.Decision{Reason: abi.ReasonAllowed}, nil
		}, abi.ReasonPolicyUnavailable, "without a reason"},
		{"refuses without a reason", func(context.Context, *abi.AdmitRequest) (*abi.Decision, error) {
			return &abi.Decision{}, nil
		}, abi.ReasonPolicyUnavailable, "without a reason"},
		{"refuses with an essay", func(context.Context, *abi.AdmitRequest) (*abi.Decision, error) {
			return &abi.Decision{Reason: strings.Repeat("a", 1<<20)}, nil
		}, abi.ReasonPolicyUnavailable, "no snake_case word"},
		{"refuses with a line break", func(context.Context, *abi.AdmitRequest) (*abi.Decision, error) {
			return &abi.Decision{Reason: "a\nb"}, nil
		}, abi.ReasonPolicyUnavailable, "no snake_case word"},
		{"says nothing", func(context.Context, *abi.AdmitRequest) (*abi.Decision, error) {
			return nil, nil //nolint:nilnil // that is the fault
		}, abi.ReasonPolicyUnavailable, "said nothing"},
		{"fails", func(context.Context, *abi.AdmitRequest) (*abi.Decision, error) {
			return nil, errors.New("guest trapped")
		}, abi.ReasonPolicyUnavailable, "guest trapped"},
		{"panics", func(context.Context, *abi.AdmitRequest) (*abi.Decision, error) {
			panic("boom")
		}, abi.ReasonPolicyUnavailable, "panicked: boom"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk()
			c := d.at(t, says("short"), func(cfg *compaction.Config) { cfg.Admitter = tc.answer })
			started := c.Consider(t.Context(), thread, filler())
			e := d.events[0]
			allowed := tc.reason == abi.ReasonAllowed
			if started != allowed || e.Decision.Allowed != allowed || e.Decision.Reason != tc.reason || !strings.Contains(e.Reason, tc.detail) {
				t.Errorf("started %v, decided %+v, %q", started, e.Decision, e.Reason)
			}
			if c.Pending(thread) != allowed {
				t.Errorf("pending %v", c.Pending(thread))
			}
		})
	}
}

// A policy that does not want to be asked again is not, for at most an hour.
func TestPolicyRetryAfter(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		retry int64
		waits time.Duration
	}{
		{"none", 0, 0},
		{"negative", math.MinInt64, 0},
		{"two seconds", 2000, 2 * time.Second},
		{"for ever", math.MaxInt64, time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d, asked := newDesk(), 0
			c := d.at(t, says("short"), func(cfg *compaction.Config) {
				cfg.Admitter = admitter(func(context.Context, *abi.AdmitRequest) (*abi.Decision, error) {
					asked++
					return &abi.Decision{Reason: "not_today", RetryAfterMS: tc.retry}, nil
				})
			})
			c.Consider(t.Context(), thread, filler())
			if tc.waits > 0 {
				d.pass(tc.waits - time.Millisecond)
				c.Consider(t.Context(), thread, filler())
				if e := d.last(t); asked != 1 || e.Decision.Reason != abi.ReasonCooldown || e.Decision.CooldownRemainingMS != 1 {
					t.Fatalf("asked %d times, decided %+v", asked, e.Decision)
				}
				d.pass(time.Millisecond)
			}
			c.Consider(t.Context(), thread, filler())
			if asked != 2 {
				t.Errorf("asked %d times, want 2", asked)
			}
		})
	}
}

// Equal refusals are reported once, then all together.
func TestRefusalsAreCounted(t *testing.T) {
	t.Parallel()
	d, pressure := newDesk(), true
	c := d.at(t, says("short"), func(cfg *compaction.Config) {
		cfg.Signals = func() abi.Signals { return abi.Signals{Memory: &abi.MemorySignal{Pressure: pressure}} }
	})
	for range 5 {
		if c.Consider(t.Context(), thread, filler()) {
			t.Fatal("started under pressure")
		}
	}
	if len(d.events) != 1 || d.events[0].Count != 0 {
		t.Fatalf("told %+v", d.events)
	}
	pressure = false
	c.Consider(t.Context(), thread, filler())
	if len(d.events) != 4 {
		t.Fatalf("told %v", d.kinds())
	}
	again, allowed := d.events[1], d.events[2]
	if again.Count != 4 || again.Decision.Reason != abi.ReasonMemoryPressure || allowed.Count != 0 || !allowed.Decision.Allowed {
		t.Errorf("told %+v, then %+v", again, allowed)
	}
	if d.events[3].Kind != compaction.EventStarted {
		t.Errorf("told %v", d.kinds())
	}
}
