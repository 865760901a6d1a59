package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/blob"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/recall"
	"github.com/mortise-dev/mortise/compaction/trial"
	"github.com/mortise-dev/mortise/internal/exit"
)

// Policy is what the section says of when to compact and what to keep.
func (c *CompactionConfig) Policy() compaction.Policy {
	return compaction.Policy{
		Mode: c.Mode, WindowTokens: c.WindowTokens, ThresholdTokens: c.ThresholdTokens,
		KeepRecentTokens: c.KeepRecentTokens, ReserveTokens: c.ReserveTokens,
		SummaryTokens: c.SummaryTokens, SummarizerTokens: c.SummarizerTokens,
		MinSavingsRatio: c.MinSavingsRatio, MinSurvival: c.MinSurvival, Bars: compaction.Bars(c.Bars),
		MaskTokens: c.MaskTokens, NeverMask: slices.Concat(c.NeverMask, []string{blob.ToolReadOutput, recall.Name}), BreakerFailures: c.BreakerFailures,
	}
}

// TrialConfig bounds the trial of a policy that is to replace another one.
type TrialConfig struct {
	// Timeout is for all recorded requests together.
	Timeout Duration `yaml:"timeout"`
	// MaxLoss is how much less may survive, from 0 to 1.
	MaxLoss *float64 `yaml:"max_loss"`
}

// Trial is what the section says of trials.
func (c *TrialConfig) Trial() trial.Config {
	const none = 1e-9 // 0 is the default
	out := trial.Config{Timeout: time.Duration(c.Timeout)}
	if c.MaxLoss != nil {
		out.MaxLoss = cmp.Or(*c.MaxLoss, none)
	}
	return out
}

// policyKeys turns the names of a policy's fields into those of the config.
var policyKeys = strings.NewReplacer( //nolint:gochecknoglobals // a table
	"compaction: Policy.", "compaction.",
	"WindowTokens", "window_tokens", "ThresholdTokens", "threshold_tokens", "KeepRecentTokens", "keep_recent_tokens",
	"ReserveTokens", "reserve_tokens", "SummaryTokens", "summary_tokens", "SummarizerTokens", "summarizer_tokens",
	"MaskTokens", "mask_tokens", "Mode", "mode", "Bars", "bars",
)

// Validate checks the section.
func (c *CompactionConfig) Validate() error {
	var errs []error
	for _, e := range c.policies() {
		errs = append(errs, exit.Under("compaction."+e.name, e.entry.validate()))
	}
	if c.MinSavingsRatio < 0 || c.MinSavingsRatio >= 1 {
		errs = append(errs, fmt.Errorf("compaction.min_savings_ratio: is %v, must be at least 0 and below 1", c.MinSavingsRatio))
	}
	if l := c.Trial.MaxLoss; l != nil && !(*l >= 0 && *l <= 1) {
		return fmt.Errorf("compaction.trial.max_loss: is %v, must be from 0 to 1", *l)
	}
	if c.MinSurvival < -1 || c.MinSurvival > 1 {
		errs = append(errs, fmt.Errorf("compaction.min_survival: is %v, must be from 0 to 1, or -1", c.MinSurvival))
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"mask_tokens", c.MaskTokens},
		{"concurrent", int64(c.Concurrent)},
		{"summarizer_tokens", c.SummarizerTokens},
		{"admission.quota.max_attempts", int64(c.Admission.Quota.MaxAttempts)},
		{"admission.signals.headroom_mib", c.Admission.Signals.HeadroomMiB},
		{"admission.signals.max_error_rate", c.Admission.Signals.MaxErrorRate},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("compaction.%s: is %d, must not be negative", f.name, f.value))
		}
	}
	if n := c.Admission.Signals.MaxErrorRate; n > 1000 {
		errs = append(errs, fmt.Errorf("compaction.admission.signals.max_error_rate: is %d, must be at most 1000 (it is per mille)", n))
	}
	if err := c.Policy().Validate(); err != nil && errors.Join(errs...) == nil {
		errs = append(errs, errors.New(policyKeys.Replace(err.Error())))
	}
	return errors.Join(errs...)
}

type namedPolicy struct {
	name  string
	entry *PolicyConfig
}

func (c *CompactionConfig) policies() []namedPolicy {
	return []namedPolicy{{"summarizer", &c.Summarizer}, {"fallback", &c.Fallback}, {"admission", &c.Admission.PolicyConfig}}
}

// withDefaults names the summarizer of a section that is there and names none.
func (c *CompactionConfig) withDefaults() {
	if !reflect.ValueOf(*c).IsZero() && reflect.ValueOf(c.Summarizer).IsZero() {
		c.Summarizer.Policy = DefaultPolicy
	}
}
