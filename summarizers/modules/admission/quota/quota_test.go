package quota_test

import (
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/admission/quota"
)

func ptr(n int64) *int64 { return &n }

func bad() mortise.Signals {
	return mortise.Signals{
		Memory:   &mortise.MemorySignal{Pressure: true},
		Provider: &mortise.ProviderSignal{Stale: true},
		Queue:    &mortise.QueueSignal{QueuedRequests: 4, MaxQueuedRequests: 4},
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	ready := ptr(180_000)
	for name, tc := range map[string]struct {
		req    mortise.AdmitRequest
		reason string
		retry  int64
	}{
		"allowed without signals":   {mortise.AdmitRequest{TokensBefore: ready}, "allowed", 0},
		"pending first":             {mortise.AdmitRequest{Pending: true, AttemptCount: 2, MaxAttempts: 2, CooldownRemainingMS: 9, Signals: bad()}, "pending", 5000},
		"attempts before cooldown":  {mortise.AdmitRequest{AttemptCount: 2, MaxAttempts: 2, CooldownRemainingMS: 9}, "session_attempt_limit", 0},
		"default attempts":          {mortise.AdmitRequest{AttemptCount: 100, TokensBefore: ready}, "session_attempt_limit", 0},
		"cooldown before nothing":   {mortise.AdmitRequest{CooldownRemainingMS: 900, CooldownMS: 1000}, "cooldown", 900},
		"nothing before signals":    {mortise.AdmitRequest{Signals: bad()}, "no_preparation", 0},
		"memory before provider":    {mortise.AdmitRequest{TokensBefore: ready, Signals: bad()}, "memory_pressure", 5000},
		"memory short":              {mortise.AdmitRequest{TokensBefore: ready, Signals: mortise.Signals{Memory: &mortise.MemorySignal{AvailableBytes: ptr(256), RequiredHeadroomBytes: 512}}}, "memory_pressure", 5000},
		"memory equal":              {mortise.AdmitRequest{TokensBefore: ready, Signals: mortise.Signals{Memory: &mortise.MemorySignal{AvailableBytes: ptr(512), RequiredHeadroomBytes: 512}}}, "allowed", 0},
		"memory unknown":            {mortise.AdmitRequest{TokensBefore: ready, Signals: mortise.Signals{Memory: &mortise.MemorySignal{RequiredHeadroomBytes: 512}}}, "allowed", 0},
		"provider slow":             {mortise.AdmitRequest{TokensBefore: ready, Signals: mortise.Signals{Provider: &mortise.ProviderSignal{P95LatencyMS: ptr(8000), MaxP95LatencyMS: ptr(5000)}}}, "provider_degraded", 5000},
		"provider at the limit":     {mortise.AdmitRequest{TokensBefore: ready, Signals: mortise.Signals{Provider: &mortise.ProviderSignal{P95LatencyMS: ptr(5000), MaxP95LatencyMS: ptr(5000)}}}, "allowed", 0},
		"provider limit unknown":    {mortise.AdmitRequest{TokensBefore: ready, Signals: mortise.Signals{Provider: &mortise.ProviderSignal{P95LatencyMS: ptr(8000)}}}, "allowed", 0},
		"provider fails":            {mortise.AdmitRequest{TokensBefore: ready, Signals: mortise.Signals{Provider: &mortise.ProviderSignal{ErrorRatePerMille: ptr(75), MaxErrorRatePerMille: ptr(50)}}}, "provider_degraded", 5000},
		"provider before queue":     {mortise.AdmitRequest{TokensBefore: ready, Signals: mortise.Signals{Provider: bad().Provider, Queue: bad().Queue}}, "provider_degraded", 5000},
		"queue full":                {mortise.AdmitRequest{TokensBefore: ready, Signals: mortise.Signals{Queue: bad().Queue}}, "queue_saturated", 5000},
		"queue without limit":       {mortise.AdmitRequest{TokensBefore: ready, Signals: mortise.Signals{Queue: &mortise.QueueSignal{QueuedRequests: 99}}}, "allowed", 0},
		"config attempts":           {mortise.AdmitRequest{AttemptCount: 2, MaxAttempts: 9, TokensBefore: ready, Config: map[string]any{"max_attempts": int64(2)}}, "session_attempt_limit", 0},
		"config shorter cooldown":   {mortise.AdmitRequest{CooldownMS: 60_000, CooldownRemainingMS: 20_000, TokensBefore: ready, Config: map[string]any{"cooldown_ms": int64(30_000)}}, "allowed", 0},
		"config longer cooldown":    {mortise.AdmitRequest{NowMS: 100_000, LastStartMS: 70_000, TokensBefore: ready, Config: map[string]any{"cooldown_ms": int64(40_000)}}, "cooldown", 10_000},
		"config no cooldown":        {mortise.AdmitRequest{NowMS: 100_000, LastStartMS: 70_000, CooldownMS: 60_000, CooldownRemainingMS: 30_000, TokensBefore: ready, Config: map[string]any{"cooldown_ms": int64(0)}}, "allowed", 0},
		"config leaves the backoff": {mortise.AdmitRequest{NowMS: 100_000, LastStartMS: 70_000, CooldownRemainingMS: 8000, BackoffRemainingMS: 8000, TokensBefore: ready, Config: map[string]any{"cooldown_ms": int64(0)}}, "cooldown", 8000},
		"config range":              {mortise.AdmitRequest{TokensBefore: ready, RangeTokens: 10, Config: map[string]any{"min_range_tokens": int64(11)}}, "no_preparation", 0},
		"config ignores the memory": {mortise.AdmitRequest{TokensBefore: ready, Signals: mortise.Signals{Memory: bad().Memory}, Config: map[string]any{"ignore_memory": true}}, "allowed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := quota.Decide(&tc.req)
			if d.Reason != tc.reason || d.Allowed != (tc.reason == "allowed") || d.RetryAfterMS != tc.retry || d.Detail == "" {
				t.Errorf("got %+v, want reason %s retry %d", d, tc.reason, tc.retry)
			}
		})
	}
}
