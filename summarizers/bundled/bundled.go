package bundled

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/bundle"
	"github.com/mortise-dev/mortise/summarizers"
)

// Summarizers returns the guest with the bundled summarizers, for host.Host.Load. Grant it
// Spec.Grants with a model.Grant for the policy anchored; it loads without. Its calls may need more
// time than the host's default: set Limits.Timeout.
func Summarizers() (host.Spec, error) {
	return bundle.Spec("summarizers")
}

// Admission returns the guest with the bundled admission policies.
func Admission() (host.Spec, error) { return bundle.Spec("admission") }

// summarizeTimeout is how long a call of a summarizer may take, on a long conversation and a busy
// machine.
const summarizeTimeout = 2 * time.Minute

// Open loads the bundled summarizers into a host, and opens one that needs no model: ledger, the default, or gc.
// It belongs to the host, and is closed with it. For another limit, a model or a configuration load
// [Summarizers] and use summarizers.Open.
func Open(ctx context.Context, h *host.Host, policy string) (*summarizers.Policy, error) {
	if NeedsModel(policy) {
		return nil, fmt.Errorf("bundled: policy %q needs a model: load Summarizers with a grant of models (host/capability/model)", policy)
	}
	spec, err := Summarizers()
	if err != nil {
		return nil, err
	}
	spec.Limits.Timeout = summarizeTimeout
	m, err := h.Load(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("bundled: %w", err)
	}
	p, err := summarizers.Open(ctx, m, summarizers.Config{Use: summarizers.UseSummarize, Policy: policy})
	if err != nil {
		return nil, fmt.Errorf("bundled: %w", errors.Join(err, m.Close(ctx)))
	}
	return p, nil
}

// NeedsModel reports whether a bundled summarizer cannot do without a model.
func NeedsModel(policy string) bool { return slices.Contains([]string{"anchored"}, policy) }
