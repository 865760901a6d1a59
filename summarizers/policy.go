package summarizers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/guest"
)

// Module is a loaded module, as host.Module is one.
type Module = guest.Caller

// Use says what a module is wanted for.
type Use string

// Uses.
const (
	UseSummarize Use = abi.ExportSummarize
	UseAdmit     Use = abi.ExportAdmit
)

// Config is how an operator uses a module.
type Config struct {
	// Use is what the module must offer. Required.
	Use Use
	// Policy picks one of the module's policies; the module's default when empty.
	Policy string
	// Config is handed to the policy with each request.
	Config any
}

// Policy is a guest that summarizes or admits.
type Policy struct {
	guest *guest.Guest
	cfg   Config
}

var (
	_ compaction.Summarizer = (*Policy)(nil)
	_ compaction.Admitter   = (*Policy)(nil)
)

// Open asks the module to describe itself and checks that it can serve: that it
// has the export, knows the policy and accepts the config.
func Open(ctx context.Context, m Module, cfg Config) (*Policy, error) {
	if cfg.Use != UseSummarize && cfg.Use != UseAdmit {
		return nil, fmt.Errorf("summarizers: Config.Use %q: must be %q or %q", cfg.Use, UseSummarize, UseAdmit)
	}
	g, err := guest.Open(ctx, m)
	if err != nil {
		return nil, err
	}
	if err := g.Require(string(cfg.Use)); err != nil {
		return nil, err
	}
	known := g.Description().Policies
	if cfg.Policy != "" && !slices.Contains(known, cfg.Policy) {
		return nil, fmt.Errorf("summarizers: module %q: knows no policy %q; it knows %s",
			m.Name(), cfg.Policy, orNone(known))
	}
	if err := g.CheckConfig(cfg.Config); err != nil {
		return nil, err
	}
	return &Policy{guest: g, cfg: cfg}, nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none by name: leave the policy out"
	}
	return strings.Join(names, ", ")
}

// Description returns what the module said of itself.
func (p *Policy) Description() abi.Description { return p.guest.Description() }

// Name returns the policy in use, for events and reports.
func (p *Policy) Name() string {
	name := p.guest.Description().Name
	if p.cfg.Policy != "" {
		name += "/" + p.cfg.Policy
	}
	return name
}

// Summarize asks the guest to stand in for a range of messages.
func (p *Policy) Summarize(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	request := *r
	request.ABI, request.Policy, request.Config = p.guest.Version(), p.cfg.Policy, p.cfg.Config
	var summary abi.Summary
	if err := p.guest.Call(ctx, abi.ExportSummarize, &request, &summary); err != nil {
		return nil, err
	}
	return &summary, nil
}

// Admit asks the guest whether a compaction may start now.
func (p *Policy) Admit(ctx context.Context, r *abi.AdmitRequest) (*abi.Decision, error) {
	request := *r
	request.ABI, request.Policy, request.Config = p.guest.Version(), p.cfg.Policy, p.cfg.Config
	var decision abi.Decision
	if err := p.guest.Call(ctx, abi.ExportAdmit, &request, &decision); err != nil {
		return nil, err
	}
	return &decision, nil
}
