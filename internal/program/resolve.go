package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/parser"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/plugins"
)

// Resolve returns what is wrong with what the config names.
func (c *Setup) Resolve(ctx context.Context, data []byte, say func(format string, args ...any)) (out []config.Problem) {
	file, _ := parser.ParseBytes(data, 0) // it was parsed before
	add := func(code func(error) exit.Code, errs ...error) {
		for _, err := range exit.Each(errs...) {
			p := config.Problem{Problem: strings.TrimPrefix(exit.Text(err), "config: "), Code: code(err)}
			p.Locate(file)
			out = append(out, p)
		}
	}
	asConfig := func(error) exit.Code { return exit.Config }
	var err error
	c.Clients, err = OpenModels(c)
	_, mcpErr := c.Mcp()
	if c.ValidateModels() == nil {
		add(asConfig, err)
	}
	add(asConfig, mcpErr, c.commands(), c.prompts())
	if c.Serve.Validate() == nil {
		_, tokenErr := c.tokens()
		serve := c.Serve
		add(asConfig, tokenErr, serve.Override("", "", 0))
	}
	_, unknown := c.Links.engine(c.Engine)
	if limits := (&config.ModuleConfig{Limits: c.Limits}).Validate(); unknown == nil && limits == nil { // or it is reported already
		add(moduleCode, c.loadable(ctx, say))
	}
	return out
}

// prompts reads the files of system prompts.
func (c *Setup) prompts() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		_, err := c.Agents[name].Prompt(c.Config)
		errs = append(errs, exit.Under("agents."+name, err))
	}
	return errors.Join(errs...)
}

// commands looks for the programs of MCP servers.
func (c *Setup) commands() error {
	var errs []error
	for i, m := range c.MCP {
		if len(m.Command) == 0 {
			continue
		}
		name := m.Command[0]
		if strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
			name = filepath.Join(c.Path(m.Dir), name)
		}
		if _, err := exec.LookPath(name); err != nil {
			errs = append(errs, fmt.Errorf("mcp[%d] (%.64s): command: %w; install it, or name it by its path", i, m.Name, err))
		}
	}
	return errors.Join(errs...)
}

// loadable loads plugins and policies, and closes them again.
func (c *Setup) loadable(ctx context.Context, say func(format string, args ...any)) error {
	logger := slog.New(slog.DiscardHandler)
	out, err := Bare(c, logger, Observer{Say: say}, host.Limits{})
	if err != nil {
		return err
	}
	out.granter.dry = true
	out.Entries = make([]plugins.Entry, len(c.Plugins))
	own := make([]error, len(c.Plugins))
	for i := range c.Plugins {
		own[i] = out.entry(ctx, i)
		e := c.Plugins[i]
		if own[i] != nil || e.ModuleConfig.Validate() != nil || e.Module == "" {
			out.Entries[i].Disabled = true // it cannot be loaded
		} else if e.Validate() != nil {
			out.Entries[i].OnFailure = "" // it is reported already
		}
	}
	out.Set, err = plugins.Load(ctx, out.Host, out.Entries)
	var errs []error
	for i, s := range out.Set.Status() {
		errs = append(errs, exit.Under(c.PluginAt(i), own[i], s.Err))
	}
	_, toolErr := out.Set.Tools()
	errs = append(errs, toolErr)
	if c.Compaction.Validate() == nil {
		err = errors.Join(err, out.loadPolicies(ctx))
		for _, f := range out.failed {
			errs = append(errs, exit.Under("compaction."+f.Name, bare(f.Err, "config: compaction."+f.Name+": ")))
		}
	}
	if errors.Join(append(errs, err)...) == nil {
		_, err = out.Phases(nil, logger)
		errs = append(errs, err)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), CloseTimeout)
	defer cancel()
	return errors.Join(append(errs, out.Close(closing))...)
}

// bare is an error without what its text begins with.
func bare(err error, prefix string) error {
	if text, ok := strings.CutPrefix(err.Error(), prefix); ok {
		return exit.With(moduleCode(err), errors.New(text))
	}
	return err
}
