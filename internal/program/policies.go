package program

import (
	"cmp"
	"context"
	"time"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/summarizers"
	"github.com/mortise-dev/mortise/summarizers/bundled"
)

// bundledTimeout is how long a bundled policy may take when no config says otherwise: a long
// conversation takes more than the host's default.
const bundledTimeout = 20 * time.Second

// Source returns the place of a policy's binary: in the program, or in the config's file.
func (p *Parts) Source(ctx context.Context, name string, use summarizers.Use, c *config.PolicyConfig) (host.Spec, error) {
	spec, err := p.spec(ctx, name, c.ModuleConfig)
	if err != nil || !c.IsBundled() {
		return spec, err
	}
	from := bundled.Summarizers
	if use == summarizers.UseAdmit {
		from = bundled.Admission
	}
	in, err := from()
	spec.Path, spec.Wasm, spec.SHA256 = in.Path, in.Wasm, in.SHA256
	if p.Cfg.Limits.Timeout == 0 {
		spec.Limits.Timeout = cmp.Or(spec.Limits.Timeout, bundledTimeout)
	}
	return spec, err
}

// loadFallback opens the summarizer that is asked when the first one fails: the config's, or
// for a bundled policy another one of the same guest.
func (p *Parts) loadFallback(ctx context.Context) error {
	c := &p.Cfg.Compaction
	var err error
	switch {
	case p.Summarizer == nil:
	case c.Fallback.On():
		p.fallback, err = p.policy(ctx, "fallback", summarizers.UseSummarize, c.Fallback)
	case c.Summarizer.IsBundled() && c.Summarizer.Policy != config.DefaultPolicy:
		p.fallback, err = summarizers.Open(ctx, p.modules[0], summarizers.Config{
			Use: summarizers.UseSummarize, Policy: config.DefaultPolicy, Grants: p.Policies[0].Spec.Grants,
		})
	}
	return err
}

// chain is the summarizer with its fallback.
func (p *Parts) chain() (compaction.Summarizer, error) {
	links := []summarizers.Link{{Name: p.Summarizer.Name(), Summarizer: p.Summarizer}}
	if p.fallback != nil {
		links = append(links, summarizers.Link{Name: p.fallback.Name(), Summarizer: p.fallback})
	}
	return summarizers.NewChain(links...)
}
