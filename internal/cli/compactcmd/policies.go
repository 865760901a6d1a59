package compactcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/eval"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/internal/wire"
	"github.com/mortise-dev/mortise/summarizers"
	"github.com/mortise-dev/mortise/summarizers/bundled"
)

// Groups of contenders.
const (
	groupAll       = "all"
	groupBundled   = "bundled"
	groupBaselines = "baselines"
	groupFallback  = "fallback"
)

// Limits of a module that is measured, where the config does not say: whole
// sessions are larger than what a run hands over.
const (
	evalTimeout   = 2 * time.Minute
	evalMemoryMiB = 512
	evalInputMiB  = 64
)

// perToken is the setting of a policy that holds the bytes per token. One
// that has it is asked in bytes.
const perToken = "bytes_per_token"

// maskingPolicy masks messages and writes no text; alone is its setting not to decline when that is not enough.
const (
	maskingPolicy = "gc"
	alone         = "alone"
)

// evalNotes is what a report says of modules, and of what was not measured.
type evalNotes interface {
	module(p *summarizers.Policy)
	leftOut(p *evalProgress, format string, args ...any)
}

// policyLoader makes contenders of what --policies names.
type policyLoader struct {
	parts *program.Parts
	// modules are by path, each loaded once.
	modules map[string]*host.Module
	// prefixes are the names that files go by.
	prefixes map[string]string
	// rules are what the groups of baselines consist of.
	rules []eval.Contender
	out   *evalProgress
	// masks means that masks are measured, too, and not texts alone.
	masks bool
}

// newPolicyLoader reads the config, when there is one.
func newPolicyLoader(o evalOptions, p *evalProgress) (*policyLoader, error) {
	cfg, err := o.read()
	if err != nil {
		return nil, err
	}
	if o.module != "" {
		cfg.In("")
		cfg.Compaction.Summarizer = config.PolicyConfig{ModuleConfig: config.ModuleConfig{Module: o.module}}
	}
	logger := slog.New(slog.NewTextHandler(p, &slog.HandlerOptions{Level: slog.LevelWarn}))
	l := &policyLoader{modules: make(map[string]*host.Module), prefixes: make(map[string]string), rules: eval.Baselines(), out: p}
	whole := config.LimitsConfig{Timeout: config.Duration(evalTimeout), MemoryMiB: evalMemoryMiB, InputMiB: evalInputMiB, OutputMiB: evalInputMiB}
	l.parts, err = program.Bare(cfg, logger, program.Observer{Say: p.Say}, whole.Limits(host.Limits{}))
	return l, err
}

// close closes what was loaded.
func (l *policyLoader) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), program.CloseTimeout)
	defer cancel()
	for _, path := range slices.Sorted(maps.Keys(l.modules)) {
		_ = l.modules[path].Close(ctx) // the process ends; nothing depends on it
	}
	_ = l.parts.Close(ctx)
}

// contenders makes what the names denote, each once, in their order.
func (l *policyLoader) contenders(ctx context.Context, names []string, report evalNotes) ([]eval.Contender, error) {
	var out []eval.Contender
	for _, name := range names {
		list, err := l.named(ctx, strings.TrimSpace(name), report)
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			if !slices.ContainsFunc(out, func(o eval.Contender) bool { return o.Name == c.Name }) {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// named makes what one name denotes.
func (l *policyLoader) named(ctx context.Context, name string, report evalNotes) ([]eval.Contender, error) {
	rules := l.rules
	of := func(k eval.Kind) []eval.Contender {
		return slices.DeleteFunc(slices.Clone(rules), func(c eval.Contender) bool { return c.Kind != k })
	}
	own := &l.parts.Cfg.Compaction.Summarizer
	switch name {
	case groupAll:
		list, err := l.policies(ctx, own, "", "", report)
		return append(list, rules...), err
	case groupBundled:
		return l.policies(ctx, own, "", "", report)
	case groupBaselines:
		return of(eval.KindBaseline), nil
	case groupFallback:
		return of(eval.KindFallback), nil
	}
	for _, c := range slices.Concat(rules, eval.Baselines()) {
		if c.Name == name {
			return []eval.Contender{c}, nil
		}
	}
	if file, policy, ok := splitModule(name); ok {
		named := &config.PolicyConfig{ModuleConfig: config.ModuleConfig{Module: file}}
		return l.policies(ctx, named, policy, l.prefix(file), report)
	}
	return l.policies(ctx, own, name, "", report)
}

// prefix tells the policies of a file from those of others: the file's name, or its
// whole path when another file has the name.
func (l *policyLoader) prefix(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	if taken, ok := l.prefixes[name]; ok && taken != file {
		return file
	}
	l.prefixes[name] = file
	return name
}

// splitModule tells FILE.wasm and FILE.wasm:POLICY from other names.
func splitModule(name string) (file, policy string, ok bool) {
	const ending = ".wasm"
	if i := strings.LastIndex(name, ending+":"); i >= 0 {
		return name[:i+len(ending)], name[i+len(ending)+1:], true
	}
	return name, "", strings.HasSuffix(name, ending)
}

// policies opens one policy of a module, or all.
func (l *policyLoader) policies(ctx context.Context, c *config.PolicyConfig, policy, prefix string, report evalNotes) ([]eval.Contender, error) {
	values, err := wire.Value(c.Config)
	if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("config: compaction.summarizer: config: %w", err))
	}
	if c.Module == "" && bundled.NeedsModel(policy) {
		return nil, exit.With(exit.Usage, fmt.Errorf("--policies: %s asks a model, and none is asked here; name another", policy))
	}
	module, spec, err := l.load(ctx, c, prefix != "")
	if err != nil {
		return nil, err
	}
	first, err := summarizers.Open(ctx, module, summarizers.Config{Use: summarizers.UseSummarize, Policy: policy, Config: values, Grants: spec.Grants})
	if err != nil {
		return nil, program.WithModule(err)
	}
	report.module(first)
	names := []string{policy}
	if policy == "" && len(first.Description().Policies) > 0 {
		names = first.Description().Policies
	}
	var out []eval.Contender
	for _, name := range names {
		if policy == "" && bundled.NeedsModel(name) {
			report.leftOut(l.out, "%s: asks a model, and none is asked here", name)
			continue
		}
		if policy == "" && name == maskingPolicy && !l.masks {
			report.leftOut(l.out, "%s: writes no text; it is measured with --future", name)
			continue
		}
		made, err := contender(ctx, module, summarizers.Config{Use: summarizers.UseSummarize, Policy: name, Config: values, Grants: spec.Grants}, first.Description())
		if err != nil {
			return nil, program.WithModule(err)
		}
		made.Name = cmp.Or(name, first.Description().Name)
		if prefix != "" {
			made.Name = prefix + "/" + made.Name
		}
		out = append(out, made)
	}
	return out, nil
}

// load loads a module once. The paths of flags are relative to the current
// folder, those of the config to its own.
func (l *policyLoader) load(ctx context.Context, c *config.PolicyConfig, flag bool) (*host.Module, host.Spec, error) {
	from := *c
	from.Policy = cmp.Or(from.Policy, config.DefaultPolicy) // any: it is the module that is loaded
	spec, err := l.parts.Source(ctx, "", summarizers.UseSummarize, &from)
	if err != nil {
		return nil, spec, exit.With(exit.Config, fmt.Errorf("config: compaction.summarizer: %w", err))
	}
	if flag {
		spec.Path = c.Module
	}
	if m, ok := l.modules[spec.Path]; ok {
		return m, spec, nil
	}
	m, err := l.parts.Host.Load(ctx, spec)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return nil, spec, err
		}
		return nil, spec, program.WithModule(guest.Explain(ctx, l.parts.Host, spec, err))
	}
	l.modules[spec.Path] = m
	return m, spec, nil
}

// contender opens a policy, in bytes when it has a setting for that.
func contender(ctx context.Context, m *host.Module, cfg summarizers.Config, d abi.Description) (eval.Contender, error) {
	out := eval.Contender{Kind: eval.KindPolicy}
	if settings, ok := cfg.Config.(map[string]any); (ok || cfg.Config == nil) && hasSetting(d, perToken) {
		settings = maps.Clone(settings)
		if settings == nil {
			settings = make(map[string]any)
		}
		settings[perToken] = 1.0
		if cfg.Policy == maskingPolicy && hasSetting(d, alone) {
			settings[alone] = true
		}
		inBytes := cfg
		inBytes.Config = settings
		if p, err := summarizers.Open(ctx, m, inBytes); err == nil {
			out.Summarizer, out.BytesPerToken = p, 1
			return out, nil
		}
	}
	p, err := summarizers.Open(ctx, m, cfg)
	out.Summarizer = p
	return out, err
}

// hasSetting reports whether the schema of a module's config knows a property.
func hasSetting(d abi.Description, name string) bool {
	schema, ok := d.ConfigSchema.(map[string]any)
	if !ok {
		return false
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return false
	}
	_, ok = properties[name]
	return ok
}

// read reads the config whose summarizer is measured. A module of the command line needs none.
func (o *evalOptions) read() (*program.Setup, error) {
	if o.module != "" && o.config == "" {
		return o.links.With(&config.Config{Version: 1}), nil
	}
	return o.links.LoadOr(o.config, "version: 1")
}
