package checkcmd

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/term"
)

const validateLong = `Check a config and everything it names: keys and values, references, environment variables
and files, listeners and tokens. Plugins and policies are loaded, asked what they are, and
checked against their grants and configs.

It opens no store, starts no MCP server, listens nowhere and asks no model; compiled modules
go to the cache. All problems are printed, each with its line. mortise doctor goes further.

Exit codes: 0 valid, 2 wrong command line, 3 wrong config, 5 only modules failed to load.`

// NewValidate makes mortise validate.
func NewValidate(s command.Streams) *cobra.Command {
	var file string
	var asJSON, schema bool
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check a config and what it names",
		Long:  validateLong,
		Example: `  mortise validate --config mortise.yaml
  mortise validate --schema > mortise.schema.json`,
		Args: command.TakesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if schema {
				return term.WriteJSON(s.Out, config.Schema())
			}
			return runValidate(cmd.Context(), s, config.FileOf(file), asJSON)
		},
	}
	f := cmd.Flags()
	command.ConfigFlag(f, &file, "")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.BoolVar(&schema, "schema", false, "print the JSON Schema of the config and check nothing")
	return cmd
}

// validateSchema names the format of what mortise validate prints.
const validateSchema = "mortise.validate.v1"

// validation is what mortise validate prints.
type validation struct {
	Schema   string           `json:"schema"`
	File     string           `json:"file"`
	Valid    bool             `json:"valid"`
	Problems []config.Problem `json:"problems"`
	Has      map[string]int   `json:"has,omitempty"`
}

func runValidate(ctx context.Context, s command.Streams, file string, asJSON bool) error {
	data, err := config.Read(file)
	if err != nil {
		return exit.With(exit.Config, err)
	}
	cfg, problems := s.Links.Problems(data)
	if cfg != nil {
		cfg.In(filepath.Dir(file))
		problems = append(problems, cfg.Resolve(ctx, data, term.NewProgress(s.Err, asJSON).Say)...)
	}
	out := validation{Schema: validateSchema, File: file, Valid: len(problems) == 0, Problems: append([]config.Problem{}, problems...)}
	slices.SortStableFunc(out.Problems, func(a, b config.Problem) int { return cmp.Compare(a.Line, b.Line) })
	if cfg != nil {
		out.Has = map[string]int{"agents": len(cfg.Agents), "models": len(cfg.Models), "plugins": len(cfg.Plugins), "mcp": len(cfg.MCP)}
	}
	if asJSON {
		err = term.WriteJSON(s.Out, out)
	} else {
		_, err = fmt.Fprint(s.Out, out.text())
	}
	if out.Valid || err != nil {
		return err
	}
	code := exit.Module
	if slices.ContainsFunc(problems, func(p config.Problem) bool { return p.Code != exit.Module }) {
		code = exit.Config
	}
	return exit.With(code, fmt.Errorf("%s: %s", file, term.Counted(len(problems), "problem")))
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
		fmt.Fprintf(&out, " %s, %s, %s, %s", term.Counted(v.Has["agents"], "agent"), term.Counted(v.Has["models"], "model"),
			term.Counted(v.Has["plugins"], "plugin"), term.Counted(v.Has["mcp"], "MCP server"))
		fmt.Fprintln(&out)
		if v.Has["agents"] == 0 {
			fmt.Fprintln(&out, "without agents: mortise run takes it, and mortise serve does not")
		}
	}
	return out.String()
}
