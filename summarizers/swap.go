package summarizers

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/trial"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/model"
	"github.com/mortise-dev/mortise/internal/guest"
)

// SwapOptions configure how another binary takes over. The zero value is valid.
type SwapOptions struct {
	host.SwapOptions

	// Untried leaves the trial on recorded requests out, for a binary that was in use before.
	Untried bool
}

// minWatched is after how many calls a policy may be rolled back: compactions are
// rare, and three failures in a row open their breaker by default.
const minWatched = 3

// Swap puts another binary, or another spec, in the place of the policy's, while
// it is in use. It must know the same policy, accept the same config and answer a small built-in
// sample; its name may be another. Then both are tried on the latest requests that the policy answered, or on the
// sample as long as there are none, as package trial describes: the report is nil without a trial, and the error a
// [*trial.Refusal] when the new binary fails or loses more. Requests in progress end on the binary before, and none
// waits for the swap. See host.Module.Swap for probes, the watch and roll-back, and for the error. Watch.MinCalls
// is 3 by default.
//
// During the watch an answer that cannot be used counts as a failure, so does a summary that the quality gate
// refuses, and compaction's breaker rolls the binary back where it would open.
//
// A module that serves two policies is swapped for both: the other one finds out at
// its next request, and fails there when the binary does not serve it.
func (p *Policy) Swap(ctx context.Context, spec host.Spec, opts SwapOptions) (report *trial.Report, err error) {
	if w := &opts.Watch; w.MinCalls == 0 && (w.Calls == 0 || w.Calls > minWatched) {
		w.MinCalls = minWatched
	}
	also := opts.Check
	opts.Check = func(ctx context.Context, gen *host.Generation) error {
		g, err := guest.Open(ctx, gen)
		if err == nil {
			err = p.probe(ctx, g)
		}
		if err == nil && !opts.Untried {
			_, asks := gen.Spec().Grants.Capability("model").(*model.Grant)
			report, err = p.try(ctx, g, asks)
		}
		if err != nil || also == nil {
			return err
		}
		return also(ctx, gen)
	}
	return report, p.live.Swap(ctx, spec, opts.SwapOptions)
}

// try runs a guest that takes no requests yet on those that were recorded.
func (p *Policy) try(ctx context.Context, g *guest.Guest, asks bool) (*trial.Report, error) {
	cfg, requests := p.cfg.Trial, p.recorded.Latest()
	cfg.Model = asks
	cfg.Spent = func() (tokens, micros int64) {
		s := p.module.Stats()
		return s.Uses["model_tokens"], s.Uses["model_cost"]
	}
	if p.cfg.Use == UseAdmit {
		return trial.Decisions(ctx, cfg, requests, func(ctx context.Context, r *abi.AdmitRequest) (*abi.Decision, error) {
			d, err := p.decide(ctx, g, r)
			if err == nil {
				err = compaction.CheckDecision(d)
			}
			return d, err
		})
	}
	if len(requests) == 0 && !asks {
		requests = []trial.Request{{Summarize: sample()}}
	}
	return trial.Summaries(ctx, cfg, requests, p.Version(), p.asked(p.live.Edition().Guest), p.asked(g))
}

// asked asks a guest for a summary, as Summarize does.
func (p *Policy) asked(g *guest.Guest) trial.Ask[abi.SummarizeRequest, abi.Summary] {
	return func(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
		s, err := p.summarize(ctx, g, r)
		if err == nil {
			err = check(r, s)
		}
		return s, err
	}
}

// RollBack implements compaction.Versioned.
func (p *Policy) RollBack(version, reason string) bool {
	gen := p.live.Edition().Generation
	return gen.Info().SHA256 == version && gen.RollBack(context.Background(), reason) //nolint:forbidigo // nothing waits for it
}

// Refused implements compaction.Judged: a summary that is not good enough is a failure of the binary that wrote it.
func (p *Policy) Refused(version, reason string) {
	if gen := p.live.Edition().Generation; gen.Info().SHA256 == version {
		gen.Fault(context.Background(), fmt.Errorf("summarizers: module %q: the quality gate refused its summary: %w", gen.Name(), errors.New(reason))) //nolint:forbidigo // nothing waits for it
	}
}
