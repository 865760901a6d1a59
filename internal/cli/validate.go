package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/parser"
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/plugins"
)

const validateLong = `Check a config and everything it names: keys and values, references, environment variables
and files, listeners and tokens. Plugins and policies are loaded, asked what they are, and
checked against their grants and configs.

It opens no store, starts no MCP server, listens nowhere and asks no model; compiled modules
go to the cache. All problems are printed, each with its line. mortise doctor goes further.

Exit codes: 0 valid, 2 wrong command line, 3 wrong config, 5 only modules failed to load.`

func newValidate(s Streams) *cobra.Command {
	var file string
	var asJSON, schema bool
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check a config and what it names",
		Long:  validateLong,
		Example: `  mortise validate --config mortise.yaml
  mortise validate --schema > mortise.schema.json`,
		Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if schema {
				return writeJSON(s.Out, ConfigSchema())
			}
			return runValidate(cmd.Context(), s, configFile(file), asJSON)
		},
	}
	f := cmd.Flags()
	configFlag(f, &file, "")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.BoolVar(&schema, "schema", false, "print the JSON Schema of the config and check nothing")
	return cmd
}

// configFile is the config of a command line.
func configFile(flag string) string { return cmp.Or(flag, os.Getenv("MORTISE_CONFIG"), configName) }

// validateSchema names the format of what mortise validate prints.
const validateSchema = "mortise.validate.v1"

// validation is what mortise validate prints.
type validation struct {
	Schema   string         `json:"schema"`
	File     string         `json:"file"`
	Valid    bool           `json:"valid"`
	Problems []Problem      `json:"problems"`
	Has      map[string]int `json:"has,omitempty"`
}

func runValidate(ctx context.Context, s Streams, file string, asJSON bool) error {
	data, err := readConfig(file)
	if err != nil {
		return with(ExitConfig, err)
	}
	cfg, problems := s.links.problemsOf(data)
	if cfg != nil {
		cfg.dir = filepath.Dir(file)
		problems = append(problems, cfg.resolve(ctx, data, newProgress(s.Err, asJSON))...)
	}
	out := validation{Schema: validateSchema, File: file, Valid: len(problems) == 0, Problems: append([]Problem{}, problems...)}
	slices.SortStableFunc(out.Problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	if cfg != nil {
		out.Has = map[string]int{"agents": len(cfg.Agents), "models": len(cfg.Models), "plugins": len(cfg.Plugins), "mcp": len(cfg.MCP)}
	}
	if asJSON {
		err = writeJSON(s.Out, out)
	} else {
		_, err = fmt.Fprint(s.Out, out.text())
	}
	if out.Valid || err != nil {
		return err
	}
	code := ExitModule
	if slices.ContainsFunc(problems, func(p Problem) bool { return p.code != ExitModule }) {
		code = ExitConfig
	}
	return with(code, fmt.Errorf("%s: %s", file, counted(len(problems), "problem")))
}

func (v *validation) text() string {
	var out strings.Builder
	for _, p := range v.Problems {
		place := v.File
		if p.Line > 0 {
			place = fmt.Sprintf("%s:%d", v.File, p.Line)
		}
		fmt.Fprintf(&out, "%s: %s\n", place, p.Problem)
	}
	if v.Valid {
		fmt.Fprintf(&out, "%s: valid:", v.File)
		for i, noun := range []string{"agents", "models", "plugins", "mcp"} {
			fmt.Fprintf(&out, "%s %d %s", strings.Repeat(",", min(i, 1)), v.Has[noun], strings.Replace(noun, "mcp", "MCP servers", 1))
		}
		fmt.Fprintln(&out)
		if v.Has["agents"] == 0 {
			fmt.Fprintln(&out, "without agents: mortise run takes it, and mortise serve does not")
		}
	}
	return out.String()
}

// resolve returns what is wrong with what the config names.
func (c *Config) resolve(ctx context.Context, data []byte, p *progress) (out []Problem) {
	file, err := parser.ParseBytes(data, 0)
	add := func(code func(error) ExitCode, errs ...error) {
		for _, err := range each(errs...) {
			p := Problem{Problem: strings.TrimPrefix(worded(err), "config: "), code: code(err)}
			p.locate(file)
			out = append(out, p)
		}
	}
	config := func(error) ExitCode { return ExitConfig }
	add(config, err)
	c.models, err = openModels(c)
	_, mcpErr := c.mcp()
	if c.validateModels() == nil {
		add(config, err)
	}
	add(config, mcpErr, c.commands(), c.prompts())
	if c.Serve.validate() == nil {
		_, tokenErr := c.tokens()
		serve := c.Serve
		add(config, tokenErr, serve.override("", "", 0))
	}
	add(moduleCode, c.loadable(ctx, p))
	return out
}

// prompts reads the files of system prompts.
func (c *Config) prompts() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		_, err := c.Agents[name].prompt(c)
		errs = append(errs, under("agents."+name, err))
	}
	return errors.Join(errs...)
}

// commands looks for the programs of MCP servers.
func (c *Config) commands() error {
	var errs []error
	for i, m := range c.MCP {
		if len(m.Command) == 0 {
			continue
		}
		name := m.Command[0]
		if strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
			name = filepath.Join(c.path(m.Dir), name)
		}
		if _, err := exec.LookPath(name); err != nil {
			errs = append(errs, fmt.Errorf("mcp[%d] (%.64s): command: %w; install it, or name it by its path", i, m.Name, err))
		}
	}
	return errors.Join(errs...)
}

// loadable loads plugins and policies, and closes them again.
func (c *Config) loadable(ctx context.Context, p *progress) error {
	cache, err := cacheDir(c)
	if err != nil {
		return err
	}
	logger := slog.New(slog.DiscardHandler)
	out := &parts{cfg: c, granter: newGranter(c, logger)}
	out.granter.dry = true
	if out.host, err = newHost(c, cache, logger, p, newCollector()); err != nil {
		return err
	}
	out.entries = make([]plugins.Entry, len(c.Plugins))
	own := make([]error, len(c.Plugins))
	for i := range c.Plugins {
		own[i] = out.entry(ctx, i)
		if e := c.Plugins[i]; own[i] != nil || e.validate() != nil || e.Module == "" {
			out.entries[i].Disabled = true // it cannot be loaded
		}
	}
	out.set, err = plugins.Load(ctx, out.host, out.entries)
	var errs []error
	for i, s := range out.set.Status() {
		errs = append(errs, under(c.pluginAt(i), own[i], s.Err))
	}
	_, toolErr := out.set.Tools()
	errs = append(errs, toolErr)
	if c.Compaction.validate() == nil {
		err = errors.Join(err, out.loadPolicies(ctx))
		for _, f := range out.failed {
			errs = append(errs, under("compaction."+f.Name, bare(f.Err, "config: compaction."+f.Name+": ")))
		}
	}
	if errors.Join(append(errs, err)...) == nil {
		_, err = out.phases(newCollector(), logger)
		errs = append(errs, err)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return errors.Join(append(errs, out.close(closing))...)
}

// bare is an error without what its text begins with.
func bare(err error, prefix string) error {
	if text, ok := strings.CutPrefix(err.Error(), prefix); ok {
		return with(moduleCode(err), errors.New(text))
	}
	return err
}
