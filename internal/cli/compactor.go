package cli

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/compaction"
)

// defaultCooldown is the least time between two compactions of a thread.
const defaultCooldown = time.Minute

// newCompactor makes the compactor that the config describes.
func newCompactor(
	parts *parts, tasks *background.Manager, observe func(compaction.Event), logger *slog.Logger,
) (*compaction.Compactor, error) {
	c := &parts.cfg.Compaction
	cooldown := defaultCooldown
	if c.Admission.Quota.Cooldown != nil {
		cooldown = time.Duration(*c.Admission.Quota.Cooldown)
	}
	summarizer, err := parts.chain()
	if err != nil {
		return nil, err
	}
	config := compaction.Config{
		Policy: compaction.Policy{
			WindowTokens: c.WindowTokens, ThresholdTokens: c.ThresholdTokens,
			KeepRecentTokens: c.KeepRecentTokens, ReserveTokens: c.ReserveTokens,
			SummaryTokens: c.SummaryTokens, MinSavingsRatio: c.MinSavingsRatio, MinSurvival: c.MinSurvival,
		},
		Quota: compaction.Quota{
			Cooldown: cooldown, Timeout: time.Duration(c.Admission.Quota.Timeout), MaxAttempts: c.Admission.Quota.MaxAttempts,
		},
		Summarizer: summarizer, PolicyName: parts.summarizer.Name(),
		Spawn: tasks.Housekeep, LiveTasks: tasks.LiveTasks, Observe: observe, Logger: logger,
	}
	if parts.admitter != nil {
		config.Admitter = parts.admitter
	}
	return compaction.New(config)
}

// compactionLine says what happened in one line, or nothing.
func compactionLine(e compaction.Event) string {
	switch e.Kind {
	case compaction.EventStarted:
		return fmt.Sprintf("compaction admitted and started in the background: %s summarizes %d messages, %s tokens",
			e.Policy, e.Messages, thousands(e.PreTokens))
	case compaction.EventSwapped:
		line := fmt.Sprintf("summary arrived through the inbox after %s and %d steps of the run, swapped in: %s -> %s tokens, %.0f%% of paths, errors and identifiers survive",
			e.Duration.Round(time.Millisecond), e.StepsMeanwhile, thousands(e.PreTokens), thousands(e.PostTokens), 100*e.Quality.Overall)
		if e.Reason != "" {
			line += "; " + e.Policy + " wrote it, " + e.Reason
		}
		return line
	case compaction.EventRefused, compaction.EventFailed:
		return fmt.Sprintf("compaction %s: %s", e.Kind, e.Reason)
	case compaction.EventFallback:
		return "the window is exceeded: oldest rounds are cut until a compaction lands"
	default: // admissions and stale results are in the report
		return ""
	}
}
