package summarizers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/guest"
)

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
	// Grants are those that the module was loaded with. What a policy asks for and
	// does not find there is an error.
	Grants host.Grants
}

// Policy is a guest that summarizes or admits.
type Policy struct {
	live *guest.Live
	cfg  Config
}

var (
	_ compaction.Summarizer = (*Policy)(nil)
	_ compaction.Admitter   = (*Policy)(nil)
)

// Open asks the module to describe itself and checks that it can serve: that it
// has the export, knows the policy, accepts the config and is granted what it asks for.
func Open(ctx context.Context, m *host.Module, cfg Config) (*Policy, error) {
	if cfg.Use != UseSummarize && cfg.Use != UseAdmit {
		return nil, fmt.Errorf("summarizers: Config.Use %q: must be %q or %q", cfg.Use, UseSummarize, UseAdmit)
	}
	p := &Policy{cfg: cfg}
	var err error
	if p.live, err = guest.NewLive(ctx, m, cfg.Grants, p.admit); err != nil {
		return nil, err
	}
	return p, nil
}

// admit says whether a guest can serve as this policy.
func (p *Policy) admit(g *guest.Guest) error {
	if err := g.Require(string(p.cfg.Use)); err != nil {
		return err
	}
	known := g.Description().Policies
	if p.cfg.Policy != "" && !slices.Contains(known, p.cfg.Policy) {
		return fmt.Errorf("summarizers: module %q: knows no policy %q; it knows %s",
			g.Module(), p.cfg.Policy, orNone(known))
	}
	return g.CheckConfig(p.cfg.Config)
}

// Swap puts another binary, or another spec, in the place of the policy's, while
// it is in use. It must know the same policy and accept the same config; its name may be
// another. Requests in progress end on the binary before. See host.Module.Swap for probes, the
// watch and roll-back, and for the error.
//
// A module that serves two policies is swapped for both: the other one finds out at
// its next request, and fails there when the binary does not serve it.
func (p *Policy) Swap(ctx context.Context, spec host.Spec, opts host.SwapOptions) error {
	return p.live.Swap(ctx, spec, opts)
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none by name: leave the policy out"
	}
	return strings.Join(names, ", ")
}

// Description returns what the module in use said of itself.
func (p *Policy) Description() abi.Description { return p.live.Edition().Guest.Description() }

// Info returns what is known about the binary in use.
func (p *Policy) Info() host.Info { return p.live.Edition().Generation.Info() }

// Granted returns what the operator granted, and notes that compare it with what the
// module asks for: sentences whose subject is the module.
func (p *Policy) Granted() (granted, notes []string) {
	a := p.live.Edition().Access
	return slices.Clone(a.Granted), slices.Clone(a.Notes)
}

// Name returns the policy in use, for events and reports.
func (p *Policy) Name() string {
	name := p.Description().Name
	if p.cfg.Policy != "" {
		name += "/" + p.cfg.Policy
	}
	return name
}

// Summarize asks the guest to stand in for a range of messages. When the guest names a way in
// which its policy did so (as hybrid does), that stands in the compaction's event.
func (p *Policy) Summarize(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	request := *r
	request.Policy, request.Config = p.cfg.Policy, p.cfg.Config
	var summary *abi.Summary
	err := p.live.Do(ctx, func(g *guest.Guest) error {
		request.ABI, summary = g.Version(), &abi.Summary{}
		return g.Call(ctx, abi.ExportSummarize, &request, summary)
	})
	if err != nil {
		return nil, err
	}
	if way, ok := strings.CutPrefix(summary.Policy, p.cfg.Policy+"/"); ok && p.cfg.Policy != "" {
		compaction.Note(ctx, p.Name()+"/"+clip(way), "")
	}
	return summary, nil
}

// maxWay bounds how a policy may say that it went its way, in bytes.
const maxWay = 32

// clip makes a word of what a guest says.
func clip(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return -1
	}, s[:min(len(s), maxWay)])
}

// Admit asks the guest whether a compaction may start now.
func (p *Policy) Admit(ctx context.Context, r *abi.AdmitRequest) (*abi.Decision, error) {
	request := *r
	request.Policy, request.Config = p.cfg.Policy, p.cfg.Config
	var decision *abi.Decision
	err := p.live.Do(ctx, func(g *guest.Guest) error {
		request.ABI, decision = g.Version(), &abi.Decision{}
		return g.Call(ctx, abi.ExportAdmit, &request, decision)
	})
	if err != nil {
		return nil, err
	}
	return decision, nil
}
