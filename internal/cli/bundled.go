package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/summarizers"
	"github.com/mortise-dev/mortise/summarizers/bundled"
)

// bundledTimeout is how long a bundled policy may take when no config says otherwise: a long
// conversation takes more than the host's default.
const bundledTimeout = 20 * time.Second

// defaultPolicy is the bundled summarizer where the config names none, and the fallback of the other bundled ones.
const defaultPolicy = "ledger"

// on reports whether the entry names a policy or a module.
func (c *PolicyConfig) on() bool { return c.Module != "" || c.Policy != "" }

// isBundled reports whether the entry means a policy of the bundled guest.
func (c *PolicyConfig) isBundled() bool { return c.Module == "" && c.Policy != "" }

// validate names what is wrong with an entry.
func (c *PolicyConfig) validate() error {
	switch {
	case !c.on() && c.Config != nil:
		return errors.New("config: stands without a policy or a module; name one")
	case c.Module == "" && c.SHA256 != "":
		return errors.New("sha256: is for a module of your own; name one with module, or leave it out")
	case c.isBundled() && gone(c.Policy) != "":
		return fmt.Errorf("policy: %s no longer exists; write policy: %s", c.Policy, gone(c.Policy))
	case c.isBundled() && bundled.NeedsModel(c.Policy) && len(c.Grants.Model) == 0:
		return fmt.Errorf("policy: %s asks a model; grant one of models with grants: {model: {summarizer: NAME}}, or write policy: ledger", c.Policy)
	}
	return c.ModuleConfig.validate()
}

// gone returns what replaces a bundled policy that was removed, empty for any other.
func gone(policy string) string {
	switch policy {
	case "extract":
		return "ledger"
	case "hybrid":
		return "ledger, or anchored with grants: {model: {summarizer: NAME}}"
	}
	return ""
}

// source returns the place of a policy's binary: in the program, or in the config's file.
func (p *parts) source(ctx context.Context, name string, use summarizers.Use, c *PolicyConfig) (host.Spec, error) {
	spec, err := p.spec(ctx, name, c.ModuleConfig)
	if err != nil || !c.isBundled() {
		return spec, err
	}
	from := bundled.Summarizers
	if use == summarizers.UseAdmit {
		from = bundled.Admission
	}
	in, err := from()
	spec.Path, spec.Wasm, spec.SHA256 = in.Path, in.Wasm, in.SHA256
	if p.cfg.Limits.Timeout == 0 {
		spec.Limits.Timeout = cmp.Or(spec.Limits.Timeout, bundledTimeout)
	}
	return spec, err
}

// loadFallback opens the summarizer that stands in when the first one fails: the config's, or
// for a bundled policy another one of the same guest.
func (p *parts) loadFallback(ctx context.Context) error {
	c := &p.cfg.Compaction
	var err error
	switch {
	case p.summarizer == nil:
	case c.Fallback.on():
		p.fallback, err = p.policy(ctx, "fallback", summarizers.UseSummarize, c.Fallback)
	case c.Summarizer.isBundled() && c.Summarizer.Policy != defaultPolicy:
		p.fallback, err = summarizers.Open(ctx, p.modules[0], summarizers.Config{
			Use: summarizers.UseSummarize, Policy: defaultPolicy, Grants: p.policies[0].spec.Grants,
		})
	}
	return err
}

// chain is the summarizer with its fallback.
func (p *parts) chain() (compaction.Summarizer, error) {
	links := []summarizers.Link{{Name: p.summarizer.Name(), Summarizer: p.summarizer}}
	if p.fallback != nil {
		links = append(links, summarizers.Link{Name: p.fallback.Name(), Summarizer: p.fallback})
	}
	return summarizers.NewChain(links...)
}
