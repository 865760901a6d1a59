package compaction_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// permissive is a policy that allows everything, and keeps what it was asked.
type permissive struct{ asked []abi.AdmitRequest }

func (p *permissive) Admit(_ context.Context, r *abi.AdmitRequest) (*abi.Decision, error) {
	p.asked = append(p.asked, *r)
	return &abi.Decision{Allowed: true, Reason: abi.ReasonAllowed}, nil
}

// TestPolicyIsAlwaysAsked: whatever the default rules would refuse is a fact that the policy weighs. What
// the host keeps by itself it keeps after the policy was asked.
func TestPolicyIsAlwaysAsked(t *testing.T) {
	t.Parallel()
	type scene struct {
		*desk
		*compaction.Compactor
	}
	fail := scripted(func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) { return nil, errors.New("no") })
	attempt := func(t *testing.T, s scene) {
		t.Helper()
		if !s.Consider(t.Context(), thread, filler()) {
			t.Fatal("not started")
		}
		consume(t, s.Compactor, filler(), s.run())
	}
	under := func(signals abi.Signals) func(*compaction.Config) {
		return func(cfg *compaction.Config) { cfg.Signals = func() abi.Signals { return signals } }
	}
	for name, tc := range map[string]struct {
		change func(*compaction.Config)
		before func(*testing.T, scene)
		log    []abi.Message
		// fact is the one that the default rules refuse for, decided what is recorded.
		fact    string
		decided string
	}{
		"pending": {
			before: func(t *testing.T, s scene) { t.Helper(); s.Consider(t.Context(), thread, filler()) },
			fact:   abi.ReasonPending, decided: abi.ReasonPending,
		},
		"attempts": {
			change: func(cfg *compaction.Config) { cfg.Quota.MaxAttempts = 1 }, before: attempt,
			fact: abi.ReasonAttemptLimit, decided: abi.ReasonAllowed,
		},
		"cooldown": {
			change: func(cfg *compaction.Config) { cfg.Quota.Cooldown = time.Hour }, before: attempt,
			fact: abi.ReasonCooldown, decided: abi.ReasonAllowed,
		},
		"backoff": {before: attempt, fact: abi.ReasonCooldown, decided: abi.ReasonAllowed},
		"nothing": {
			before: func(_ *testing.T, s scene) { s.Request(thread, "") }, log: filler()[5:],
			fact: abi.ReasonNoPreparation, decided: abi.ReasonNoPreparation,
		},
		"memory":   {change: under(abi.Signals{Memory: &abi.MemorySignal{Pressure: true}}), fact: abi.ReasonMemoryPressure, decided: abi.ReasonAllowed},
		"provider": {change: under(abi.Signals{Provider: &abi.ProviderSignal{Stale: true}}), fact: abi.ReasonProviderDegraded, decided: abi.ReasonAllowed},
		"queue":    {change: under(abi.Signals{Queue: &abi.QueueSignal{Saturated: true}}), fact: abi.ReasonQueueSaturated, decided: abi.ReasonAllowed},
		"limiter": {
			change: func(cfg *compaction.Config) { cfg.Limiter = compaction.NewLimiter(1) },
			before: func(t *testing.T, s scene) { t.Helper(); s.Consider(t.Context(), "another", filler()) },
			fact:   abi.ReasonQueueSaturated, decided: abi.ReasonQueueSaturated,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, policy := newDesk(), &permissive{}
			s := scene{d, d.at(t, fail, func(cfg *compaction.Config) {
				cfg.Admitter = policy
				if tc.change != nil {
					tc.change(cfg)
				}
			})}
			if tc.before != nil {
				tc.before(t, s)
			}
			log := tc.log
			if log == nil {
				log = filler()
			}
			before := len(policy.asked)
			started := s.Consider(t.Context(), thread, log)
			if len(policy.asked) != before+1 {
				t.Fatalf("the policy was asked %d times", len(policy.asked)-before)
			}
			if got := compaction.Decide(&policy.asked[before]); got != tc.fact {
				t.Errorf("by the default rules its request is %s, want %s: %+v", got, tc.fact, policy.asked[before])
			}
			var last *compaction.AdmissionDecision
			for _, e := range d.events {
				if e.Decision != nil {
					last = e.Decision
				}
			}
			if last.Reason != tc.decided || started != (tc.decided == abi.ReasonAllowed) {
				t.Errorf("started %v, decided %+v, want %s", started, last, tc.decided)
			}
		})
	}
}

// TestFactsOfARequest: history, cache and cost, in a thread that was compacted before.
func TestFactsOfARequest(t *testing.T) {
	t.Parallel()
	d, policy := newDesk(), &permissive{}
	c := d.at(t, says("short"), func(cfg *compaction.Config) {
		cfg.Admitter, cfg.Quota.Cooldown = policy, time.Minute
		// 4 for a million tokens, 1 from the cache, 5 into it.
		cfg.Cost = func(model string, u abi.Usage) float64 {
			if model != "m" {
				return 0
			}
			fresh := u.PromptTokens - u.CacheReadTokens - u.CacheCreationTokens
			return (4*float64(fresh) + float64(u.CacheReadTokens) + 5*float64(u.CacheCreationTokens)) / 1e6
		}
	})
	log := filler()
	start := d.clock()
	if !c.Consider(t.Context(), thread, log) {
		t.Fatal("not started")
	}
	first := policy.asked[0]
	if first.LastStartMS != 0 || first.Cache != nil || first.Requested || first.Cost == nil || first.Cost.SavedMicros != 0 {
		t.Errorf("asked %+v at first", first)
	}
	consume(t, c, log, d.run())
	d.pass(10 * time.Second)
	c.Billed(thread, "m", abi.Usage{PromptTokens: 1000, CacheReadTokens: 750, CacheCreationTokens: 100})
	c.Request(thread, "")
	log = append(log, assistant("more", words(1500)), user("next", words(300)))
	view := compaction.Estimate(c.View(thread, log))
	if !c.Consider(t.Context(), thread, log) {
		t.Fatal("not started again")
	}
	r := policy.asked[1]
	if r.LastStartMS != start.UnixMilli() || r.CooldownRemainingMS != 50_000 || !r.Requested || r.AttemptCount != 0 || r.Failures != 0 {
		t.Errorf("asked %+v", r)
	}
	if want := (&abi.CacheUse{AtMS: d.clock().UnixMilli(), PromptTokens: 1000, ReadTokens: 750, WrittenTokens: 100, Model: "m", ReadPerMille: 250, WritePerMille: 1250}); !reflect.DeepEqual(r.Cache, want) {
		t.Errorf("cache %+v, want %+v", r.Cache, want)
	}
	// All of the view but the newest message is replaced, the summary before included.
	saved := view - compaction.Estimate(log[len(log)-1:]) - 500
	want := &abi.CompactionCost{SummaryTokens: 500, SavedTokens: saved, RewriteTokens: view - saved, AfterTokens: c.Markers(thread)[0].PostTokens}
	want.RewriteMicros = (5 - 1) * want.RewriteTokens
	read := saved * 3 / 4
	want.SavedMicros = 4*(saved-read) + read
	if !reflect.DeepEqual(r.Cost, want) {
		t.Errorf("cost %+v, want %+v", r.Cost, want)
	}
}

// versioned is a policy that was swapped.
type versioned struct {
	admitter
	version string
}

func (v *versioned) Version() string              { return v.version }
func (v *versioned) RollBack(string, string) bool { return false }

// TestRetryIsOfAVersion: a policy that another one replaced holds nothing back, and an answer while a
// compaction is pending neither.
func TestRetryIsOfAVersion(t *testing.T) {
	t.Parallel()
	d, asked, allowed := newDesk(), 0, false
	policy := &versioned{version: "1", admitter: func(context.Context, *abi.AdmitRequest) (*abi.Decision, error) {
		asked++
		return &abi.Decision{Allowed: allowed, Reason: "not_today", RetryAfterMS: 60_000}, nil
	}}
	c := d.at(t, says("short"), func(cfg *compaction.Config) { cfg.Admitter = policy })
	c.Consider(t.Context(), thread, filler())
	if c.Consider(t.Context(), thread, filler()) || asked != 1 {
		t.Fatalf("asked %d times", asked)
	}
	policy.version, allowed = "2", true
	if !c.Consider(t.Context(), thread, filler()) || asked != 2 {
		t.Fatalf("the policy that took over was asked %d times", asked-1)
	}
	policy.version = "3"
	for range 3 {
		c.Consider(t.Context(), thread, filler())
	}
	if asked != 5 {
		t.Errorf("asked %d times while a compaction was pending, want 3", asked-2)
	}
}
