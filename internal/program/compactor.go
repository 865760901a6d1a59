package program

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/signals"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/thread"
)

// defaultCooldown is the least time between two compactions of a thread.
const defaultCooldown = time.Minute

// shared is what the compactors of all conversations use together.
type shared struct {
	limiter *compaction.Limiter
	sampler *signals.Sampler
	// Threads keeps conversations; nil keeps none.
	Threads *thread.Threads
	// Masks reports whether compactions replace long outputs by handles.
	Masks bool
}

// newShared makes what the config describes. It must be closed.
func newShared(cfg *Setup) (*shared, error) {
	c := &cfg.Compaction
	s := &shared{limiter: compaction.NewLimiter(c.Concurrent)}
	var err error
	s.sampler, err = signals.New(signals.Config{
		Headroom: c.Admission.Signals.HeadroomMiB << 20, MaxLatency: time.Duration(c.Admission.Signals.MaxLatency),
		MaxErrorRate: c.Admission.Signals.MaxErrorRate, Window: time.Duration(c.Admission.Signals.Window),
	})
	if err != nil {
		return s, fmt.Errorf("config: compaction.admission.signals: %w", err)
	}
	if cfg.Home != nil {
		s.Threads = thread.On(cfg.Home.Store)
	}
	s.Masks = c.MaskTokens > 0
	return s, nil
}

// Observe tells the sampler of each request to the model.
func (s *shared) Observe(ctx context.Context, _ llm.Call) (context.Context, func(llm.Call)) {
	return ctx, func(c llm.Call) { s.sampler.Observe(c.Took, c.Fault()) }
}

// CompactionConfig is what the config says of compaction.
func CompactionConfig(parts *Parts) (compaction.Config, error) {
	c := &parts.Cfg.Compaction
	cooldown := defaultCooldown
	if c.Admission.Quota.Cooldown != nil {
		cooldown = time.Duration(*c.Admission.Quota.Cooldown)
	}
	summarizer, err := parts.chain()
	if err != nil {
		return compaction.Config{}, err
	}
	out := compaction.Config{
		Policy: c.Policy(),
		Quota: compaction.Quota{
			Cooldown: cooldown, Timeout: time.Duration(c.Admission.Quota.Timeout), MaxAttempts: c.Admission.Quota.MaxAttempts,
			Forget: time.Duration(c.Admission.Quota.Forget),
		},
		Summarizer: summarizer, PolicyName: parts.Summarizer.Name(), Limiter: parts.Shared.limiter, Signals: parts.Shared.sampler.Sample,
		Cost: parts.Cfg.Clients.cost,
	}
	if parts.admitter != nil {
		out.Admitter = parts.admitter
	}
	return out, nil
}
