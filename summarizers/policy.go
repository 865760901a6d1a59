package summarizers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/trial"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/guest"
)

// Use is what a module is wanted for.
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
	// Trial bounds what a swap tries on recorded requests. Model and Spent are set by the Policy.
	Trial trial.Config
}

// ErrPolicy means that a module has no policy of the name in Config.Policy.
var ErrPolicy = errors.New("knows no policy")

// Policy is a guest that summarizes or admits.
type Policy struct {
	module *host.Module
	live   *guest.Live
	cfg    Config
	// recorded are the latest requests, for the trial of what replaces the module.
	recorded trial.Recorder
}

var (
	_ compaction.Summarizer = (*Policy)(nil)
	_ compaction.Admitter   = (*Policy)(nil)
	_ compaction.Versioned  = (*Policy)(nil)
	_ compaction.Judged     = (*Policy)(nil)
)

// Open asks the module to describe itself and checks that it can serve: that it
// has the export, knows the policy, accepts the config and is granted what it asks for.
func Open(ctx context.Context, m *host.Module, cfg Config) (*Policy, error) {
	if cfg.Use != UseSummarize && cfg.Use != UseAdmit {
		return nil, fmt.Errorf("summarizers: Config.Use %q: must be %q or %q", cfg.Use, UseSummarize, UseAdmit)
	}
	err := cfg.Trial.Validate()
	if err != nil {
		return nil, fmt.Errorf("summarizers: Config.Trial: %w", err)
	}
	p := &Policy{module: m, cfg: cfg}
	if p.live, err = guest.NewLive(ctx, m, cfg.Grants, p.admit); err != nil {
		return nil, err
	}
	return p, nil
}

// admit reports whether a guest can serve as this policy.
func (p *Policy) admit(ctx context.Context, g *guest.Guest) error {
	if err := g.Require(string(p.cfg.Use)); err != nil {
		return err
	}
	known := g.Description().Policies
	if p.cfg.Policy != "" && !slices.Contains(known, p.cfg.Policy) {
		return fmt.Errorf("summarizers: module %q: %w %q; it knows %s", g.Module(), ErrPolicy, p.cfg.Policy, orNone(known))
	}
	return g.ValidateConfig(ctx, p.cfg.Config)
}

// Version implements compaction.Versioned: the checksum of the binary in use.
func (p *Policy) Version() string { return p.live.Edition().Generation.Info().SHA256 }

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

// Summarize asks the guest to replace a range of messages. An answer that cannot be a summary is an error.
func (p *Policy) Summarize(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	summary, err := p.trySummarize(ctx, r)
	for guest.NotBegun(err) {
		summary, err = p.trySummarize(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	return summary, nil
}

// trySummarize calls the guest in use now.
func (p *Policy) trySummarize(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	e, err := p.live.Current(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	summary, err := p.summarize(ctx, e.Guest, r)
	q := trial.Request{Summarize: r, Bytes: sourceBytes(r)}
	if err == nil {
		q.Summary, err = summary, check(r, summary)
		e.Generation.Fault(ctx, err)
	} else {
		err = undecodable(ctx, e, err)
	}
	p.record(ctx, e, q, start, err)
	return summary, err
}

// record records a request with its answer, unless the caller gave it up or a swap came between.
func (p *Policy) record(ctx context.Context, e *guest.Edition, q trial.Request, start time.Time, err error) {
	if !errors.Is(context.Cause(ctx), context.Canceled) && !errors.Is(err, host.ErrRetired) && !errors.Is(err, host.ErrClosed) {
		q.Version, q.Err, q.Took = e.Generation.Info().SHA256, cmp.Or(err, q.Err), time.Since(start)
		p.recorded.Add(q)
	}
}

func (p *Policy) summarize(ctx context.Context, g *guest.Guest, r *abi.SummarizeRequest) (*abi.Summary, error) {
	request, summary := *r, &abi.Summary{}
	request.ABI, request.Policy, request.Config = g.Version(), p.cfg.Policy, p.cfg.Config
	if request.Messages = nil; r.Ledger == nil || !p.readsLedger(g) {
		request.Messages = withoutOriginals(r.Messages)
	}
	return summary, g.Call(ctx, abi.ExportSummarize, &request, summary)
}

// readsLedger reports whether the policy in use needs no messages besides a ledger.
func (p *Policy) readsLedger(g *guest.Guest) bool {
	d := g.Description()
	name := p.cfg.Policy
	if name == "" && len(d.Policies) > 0 {
		name = d.Policies[0]
	}
	return slices.Contains(d.LedgerPolicies, name)
}

// withoutOriginals returns messages without the answers that plugins replaced, which a stored log keeps and no guest may
// see. It copies them only if there are such.
func withoutOriginals(messages []abi.Message) []abi.Message {
	has := func(m abi.Message) bool { return m.Metadata[abi.MetadataOriginal] != nil }
	if !slices.ContainsFunc(messages, has) {
		return messages
	}
	out := slices.Clone(messages)
	for i := range out {
		if has(out[i]) {
			out[i].Metadata = maps.Clone(out[i].Metadata)
			delete(out[i].Metadata, abi.MetadataOriginal)
		}
	}
	return out
}

// undecodable counts an answer that cannot be decoded, which the host saw succeed, and returns err.
func undecodable(ctx context.Context, e *guest.Edition, err error) error {
	if errors.Is(err, guest.ErrDecode) {
		e.Generation.Fault(ctx, err)
	}
	return err
}

// Admit asks the guest whether a compaction may start now.
func (p *Policy) Admit(ctx context.Context, r *abi.AdmitRequest) (*abi.Decision, error) {
	decision, err := p.tryAdmit(ctx, r)
	for guest.NotBegun(err) {
		decision, err = p.tryAdmit(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	return decision, nil
}

// tryAdmit calls the guest in use now.
func (p *Policy) tryAdmit(ctx context.Context, r *abi.AdmitRequest) (*abi.Decision, error) {
	e, err := p.live.Current(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	decision, err := p.decide(ctx, e.Guest, r)
	q := trial.Request{Admit: r, Bytes: admitBytes}
	if err == nil {
		q.Decision, q.Err = decision, compaction.CheckDecision(decision)
		e.Generation.Fault(ctx, q.Err)
	}
	err = undecodable(ctx, e, err)
	p.record(ctx, e, q, start, err)
	return decision, err
}

// admitBytes is about how large a request of an admission policy is.
const admitBytes = 1 << 10

func (p *Policy) decide(ctx context.Context, g *guest.Guest, r *abi.AdmitRequest) (*abi.Decision, error) {
	request, decision := *r, &abi.Decision{}
	request.ABI, request.Policy, request.Config = g.Version(), p.cfg.Policy, p.cfg.Config
	return decision, g.Call(ctx, abi.ExportAdmit, &request, decision)
}
