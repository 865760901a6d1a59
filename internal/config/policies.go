package config

import (
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/summarizers/bundled"
)

// DefaultPolicy is the bundled summarizer where the config names none, and the fallback of the other bundled ones.
const DefaultPolicy = "ledger"

// PolicyConfig is a compaction policy in a module; in the bundled guest when no module is
// named.
type PolicyConfig struct {
	Policy       string `yaml:"policy"`
	ModuleConfig `yaml:",inline"`
}

// On reports whether the entry names a policy or a module.
func (c *PolicyConfig) On() bool { return c.Module != "" || c.Policy != "" }

// IsBundled reports whether the entry means a policy of the bundled guest.
func (c *PolicyConfig) IsBundled() bool { return c.Module == "" && c.Policy != "" }

// validate names what is wrong with an entry.
func (c *PolicyConfig) validate() error {
	switch {
	case !c.On() && c.Config != nil:
		return errors.New("config: stands without a policy or a module; name one")
	case c.Module == "" && c.SHA256 != "":
		return errors.New("sha256: is for a module of your own; name one with module, or leave it out")
	case c.IsBundled() && bundled.NeedsModel(c.Policy) && len(c.Grants.Model) == 0:
		return fmt.Errorf("policy: %s asks a model; grant one of models with grants: {model: {summarizer: NAME}}, or write policy: ledger", c.Policy)
	}
	return c.ModuleConfig.Validate()
}

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

// CompactionConfig turns compaction on when a summarizer is named, by its policy or by its
// module.
type CompactionConfig struct {
	WindowTokens     int64           `yaml:"window_tokens"`
	ThresholdTokens  int64           `yaml:"threshold_tokens"`
	KeepRecentTokens int64           `yaml:"keep_recent_tokens"`
	ReserveTokens    int64           `yaml:"reserve_tokens"`
	SummaryTokens    int64           `yaml:"summary_tokens"`
	MinSavingsRatio  float64         `yaml:"min_savings_ratio"`
	MinSurvival      float64         `yaml:"min_survival"`
	Bars             BarsConfig      `yaml:"bars"`
	Mode             compaction.Mode `yaml:"mode"`
	SummarizerTokens int64           `yaml:"summarizer_tokens"`
	BreakerFailures  int             `yaml:"breaker_failures"`
	// MaskTokens is the size from which tool outputs are masked; 0 masks none.
	MaskTokens int64    `yaml:"mask_tokens"`
	NeverMask  []string `yaml:"never_mask"`
	// Concurrent is how many compactions run at a time.
	Concurrent int          `yaml:"concurrent"`
	Summarizer PolicyConfig `yaml:"summarizer"`
	// Fallback summarizes when Summarizer fails.
	Fallback  PolicyConfig    `yaml:"fallback"`
	Admission AdmissionConfig `yaml:"admission"`
	Trial     TrialConfig     `yaml:"trial"`
}

// AdmissionConfig is the policy that decides, the default rules when it names none, and what it is given.
type AdmissionConfig struct {
	PolicyConfig `yaml:",inline"`
	Quota        QuotaConfig   `yaml:"quota"`
	Signals      SignalsConfig `yaml:"signals"`
}

// QuotaConfig bounds compactions of one thread.
type QuotaConfig struct {
	Cooldown    *Duration `yaml:"cooldown"`
	Timeout     Duration  `yaml:"timeout"`
	MaxAttempts int       `yaml:"max_attempts"`
	Forget      Duration  `yaml:"forget"`
}
