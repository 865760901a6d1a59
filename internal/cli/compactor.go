package cli

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/signals"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/thread"
)

// recordedModel is whose context is compacted: a recording names no model.
const recordedModel = "recording"

// defaultCooldown is the least time between two compactions of a thread.
const defaultCooldown = time.Minute

// BarsConfig are the least shares of what must survive, by kind.
type BarsConfig struct {
	Paths       float64 `yaml:"paths"`
	URLs        float64 `yaml:"urls"`
	Identifiers float64 `yaml:"identifiers"`
	Numbers     float64 `yaml:"numbers"`
	Errors      float64 `yaml:"errors"`
	Files       float64 `yaml:"files"`
	Pins        float64 `yaml:"pins"`
	Structure   float64 `yaml:"structure"`
}

// SignalsConfig has the thresholds of too little and too slow for a compaction to start.
type SignalsConfig struct {
	HeadroomMiB  int64    `yaml:"headroom_mib"`
	MaxLatency   Duration `yaml:"max_latency"`
	MaxErrorRate int64    `yaml:"max_error_rate"`
	Window       Duration `yaml:"window"`
}

// shared is what the compactors of all conversations use together.
type shared struct {
	limiter *compaction.Limiter
	sampler *signals.Sampler
	// threads keeps conversations; nil keeps none.
	threads *thread.Threads
	// masks reports whether compactions replace long outputs by handles.
	masks bool
}

// newShared makes what the config describes. It must be closed.
func newShared(cfg *Config) (*shared, error) {
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
	if cfg.home != nil {
		s.threads = thread.On(cfg.home.store)
	}
	s.masks = c.MaskTokens > 0
	return s, nil
}

// observe tells the sampler of each request to the model.
func (s *shared) observe(ctx context.Context, _ llm.Call) (context.Context, func(llm.Call)) {
	return ctx, func(c llm.Call) { s.sampler.Observe(c.Took, c.Fault()) }
}

// newCompactor makes the compactor of a recording that the config describes.
func newCompactor(
	parts *parts, tasks *taskDesk, k *keeper, observe func(compaction.Event), recorded func() time.Time, logger *slog.Logger,
) (*compaction.Compactor, error) {
	config, err := compactionConfig(parts)
	if err != nil {
		return nil, err
	}
	if k != nil {
		config.Store = k
	}
	config.Spawn, config.LiveTasks, config.Observe = tasks.Housekeep, tasks.LiveTasks, observe
	config.Logger, config.Model = logger, recordedModel
	config.Admitter = &recordedClock{policy: config.Admitter, now: recorded}
	if parts.shared.masks {
		config.Keep = func(id, label, text string) (string, error) {
			return tasks.blobs.Put(context.Background(), id, label, text) //nolint:forbidigo // the policy has no context
		}
	}
	return compaction.New(config)
}

// compactionConfig is what the config says of compaction.
func compactionConfig(parts *parts) (compaction.Config, error) {
	c := &parts.cfg.Compaction
	cooldown := defaultCooldown
	if c.Admission.Quota.Cooldown != nil {
		cooldown = time.Duration(*c.Admission.Quota.Cooldown)
	}
	summarizer, err := parts.chain()
	if err != nil {
		return compaction.Config{}, err
	}
	out := compaction.Config{
		Policy: c.policy(),
		Quota: compaction.Quota{
			Cooldown: cooldown, Timeout: time.Duration(c.Admission.Quota.Timeout), MaxAttempts: c.Admission.Quota.MaxAttempts,
			Forget: time.Duration(c.Admission.Quota.Forget),
		},
		Summarizer: summarizer, PolicyName: parts.summarizer.Name(), Limiter: parts.shared.limiter, Signals: parts.shared.sampler.Sample,
		Cost: parts.cfg.models.cost,
	}
	if parts.admitter != nil {
		out.Admitter = parts.admitter
	}
	return out, nil
}

// compactionLine summarizes what happened in one line, or is empty.
func compactionLine(e compaction.Event) string {
	switch e.Kind {
	case compaction.EventStarted:
		return fmt.Sprintf("compaction admitted and started in the background: %s summarizes %d messages, %s tokens",
			e.Policy, e.Messages, thousands(e.PreTokens))
	case compaction.EventSwapped:
		if e.Masked > 0 {
			return fmt.Sprintf("%d outputs masked by %s after %d steps of the run: %s -> %s tokens", e.Masked, e.Policy, e.StepsMeanwhile, thousands(e.PreTokens), thousands(e.PostTokens))
		}
		line := fmt.Sprintf("summary arrived through the inbox after %s and %d steps of the run, swapped in: %s -> %s tokens, %.0f%% of paths, errors and identifiers survive",
			e.Duration.Round(time.Millisecond), e.StepsMeanwhile, thousands(e.PreTokens), thousands(e.PostTokens), 100*e.Quality.Overall)
		if e.Reason != "" {
			line += "; " + e.Policy + " wrote it, " + e.Reason
		}
		return line
	case compaction.EventRefused, compaction.EventFailed, compaction.EventRecovered, compaction.EventBreaker:
		return fmt.Sprintf("compaction %s: %s", e.Kind, e.Reason)
	case compaction.EventFallback:
		return "the window is exceeded: oldest rounds are cut until a compaction lands"
	default: // admissions and stale results are in the report
		return ""
	}
}
