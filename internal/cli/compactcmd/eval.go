package compactcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/compaction/eval"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/internal/term"
)

// evalOptions are the flags of mortise compact eval.
type evalOptions struct {
	links       program.Links
	config      string
	module      string
	probes      []string
	policies    []string
	budgets     []string
	chains      []string
	growths     []string
	output      string
	plots       []string
	minSurvival float64
	minGrounded float64
	lenient     bool
	quiet       bool
	// The rest belongs to --future.
	future bool
	json   bool
	sizes  []string
	// set reports flags that the command line names.
	set func(flag string) bool
}

const evalLong = `Compact recorded sessions by each policy, at each budget, once and in chains, and
count which facts survive. No model is asked.

TRANSCRIPT is a recording that mortise run reads, a folder of them, or a store: a SQLite
file or a URL, with the threads of mortise proxy, serve and run. Facts come
from --probes, files of JSON lines (see docs/compaction.md); without them they are
made from the sessions: URLs, error lines, paths, identifiers and numbers that
matter, each held to the sentences around it.

Two scores for each fact: literal (the string is still there) and grounded (a
content word of the question, or of its sentence, is still near it).

--policies names what is measured: bundled policies, or those of the config's
summarizer module or of --module; FILE.wasm or FILE.wasm:POLICY; baselines by name;
or the groups bundled (all policies of the module that need no model), baselines,
fallback and all.

A budget is a share of the characters (10%) or a number of tokens (2000). In a
chain of k the session is cut into k parts, and each part is summarized on top of the
summary before. With --growth whole each compaction has the budget of the whole
session, with said that of what was said so far.

With --future the sessions are logs of Claude Code, Codex or pi in which the agent
compacted. The vendor's own summary, the baselines and the policies are compared at
the same size: what the agent needed later, files, false statements, open work, cost.

Progress goes to standard error, the report to standard output.

Exit codes: 0 done, 1 a policy keeps less than --min-survival or --min-grounded,
or failed each time, 2 wrong command line, 3 wrong config, 4 unreadable session or
probes, 5 a module failed to load, 130 interrupted.`

func newCompactEval(s command.Streams) *cobra.Command {
	o := evalOptions{links: s.Links}
	cmd := &cobra.Command{
		Use:   "eval TRANSCRIPT|FOLDER...",
		Short: "Measure what compaction policies keep of recorded sessions",
		Long:  evalLong,
		Example: `  mortise compact eval examples/sessions/review.jsonl
  mortise compact eval --module mine.wasm --budgets 5%,10% --plot survival.svg sessions/
  mortise compact eval --probes probes/ --policies ledger --min-survival 0.8 sessions/
  mortise compact eval --policies ledger proxy.db
  mortise compact eval --future ~/.claude/projects/`,
		Args: command.TakesSome("TRANSCRIPT|FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.set = cmd.Flags().Changed
			if o.json {
				o.output = "json"
			}
			if o.future {
				return compactFuture(cmd.Context(), s, args, o)
			}
			return compactEval(cmd.Context(), s, args, o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.config, "config", "c", "", "config file whose summarizer is measured (default mortise.yaml in the current folder, if there is one)")
	f.StringVar(&o.module, "module", "", "summarizer module to measure instead of the config's or the bundled one")
	f.StringSliceVar(&o.probes, "probes", nil, "files or folders of probes, each file a set of its own")
	f.StringSliceVar(&o.policies, "policies", []string{groupAll}, "what is measured")
	f.StringSliceVar(&o.budgets, "budgets", []string{"10%"}, "how long a summary may be")
	f.StringSliceVar(&o.chains, "chain", []string{"1", "2", "4", "8"}, "how many compactions follow each other")
	f.StringSliceVar(&o.growths, "growth", []string{string(eval.OfWhole), string(eval.OfSaid)}, "budget along a chain: whole, said or both")
	command.OutputFlag(f, &o.output, "report as table or json")
	f.StringSliceVar(&o.plots, "plot", nil, "draw the scores into FILE.svg")
	f.Float64Var(&o.minSurvival, "min-survival", 0, "least literal score of a policy, from 0 to 1")
	f.Float64Var(&o.minGrounded, "min-grounded", 0, "least grounded score of a policy, from 0 to 1")
	f.BoolVar(&o.lenient, "lenient", false, "leave out lines that cannot be read")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress")
	f.BoolVar(&o.future, "future", false, "measure on the compactions that the sessions hold what the agent needed later")
	f.StringSliceVar(&o.sizes, "sizes", []string{"vendor", "1%", "4.3%", "10%"}, "with --future, how long a text may be: as the vendor's own summary, or a share")
	f.BoolVar(&o.json, "json", false, "short for --output json")
	return cmd
}

// compactEval is mortise compact eval.
func compactEval(ctx context.Context, s command.Streams, paths []string, o evalOptions) error {
	start := time.Now()
	cfg, err := o.measured()
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	p := &evalProgress{Progress: term.NewProgress(s.Err, o.quiet)}
	defer p.Close()
	out := &EvalReport{}
	if cfg.Sets, err = o.sets(ctx, paths, s.In, out, p); errors.Is(err, fs.ErrNotExist) {
		return exit.NotFound(err)
	} else if err != nil {
		return exit.With(exit.Session, err)
	}
	l, err := newPolicyLoader(o, p)
	if err != nil {
		return exit.With(exit.Config, err)
	}
	defer l.close(ctx)
	if cfg.Contenders, err = l.contenders(ctx, o.policies, out); err != nil {
		return err
	}
	cfg.Progress = p.step
	report, err := eval.Run(ctx, cfg)
	if ctx.Err() != nil {
		return exit.With(exit.Interrupted, errors.New("interrupted; there is no report"))
	}
	if err != nil {
		return exit.With(exit.Run, err)
	}
	p.Close()
	out.Report = *report
	out.WallMS = time.Since(start).Milliseconds()
	if err := out.write(s.Out, o.output); err != nil {
		return exit.With(exit.Run, fmt.Errorf("report: %w", err))
	}
	for _, path := range o.plots {
		if err := plotSurvival(report, path); err != nil {
			return exit.With(exit.Run, err)
		}
	}
	return exit.With(exit.Run, out.verdict(eval.Score{Literal: o.minSurvival, Grounded: o.minGrounded}))
}

// measured reads the flags that select what to measure, and checks the others.
func (o *evalOptions) measured() (eval.Config, error) {
	var c eval.Config
	for flag, v := range map[string]float64{"--min-survival": o.minSurvival, "--min-grounded": o.minGrounded} {
		if !(v >= 0 && v <= 1) {
			return c, fmt.Errorf("%s %v: must be from 0 to 1", flag, v)
		}
	}
	for _, path := range o.plots {
		if err := checkPlot(path); err != nil {
			return c, err
		}
	}
	for _, b := range o.budgets {
		budget, err := eval.ParseBudget(strings.TrimSpace(b))
		if err != nil {
			return c, fmt.Errorf("--budgets: %w", err)
		}
		c.Budgets = append(c.Budgets, budget)
	}
	var err error
	if c.Chains, err = o.lengths(); err != nil {
		return c, err
	}
	for _, g := range o.growths {
		if g != string(eval.OfWhole) && g != string(eval.OfSaid) {
			return c, fmt.Errorf("--growth %q: must be whole or said", g)
		}
		c.Growths = append(c.Growths, eval.Growth(g))
	}
	return c, nil
}

// lengths are the lengths of chains.
func (o *evalOptions) lengths() ([]int, error) {
	var out []int
	for _, k := range o.chains {
		n, err := strconv.Atoi(strings.TrimSpace(k))
		if err != nil || n < 1 || n > 1000 {
			return nil, fmt.Errorf("--chain %q: must be a number from 1 to 1000", k)
		}
		out = append(out, n)
	}
	return out, nil
}

// verdict is an error that names what never worked and what is below the least
// score. What failed at times has its score, and a note in the table.
func (r *EvalReport) verdict(least eval.Score) error {
	var bad []string
	for _, c := range r.Cells {
		if c.Kind == eval.KindPolicy && c.Failures == c.Compactions {
			bad = append(bad, fmt.Sprintf("%s failed each of %d times: %s", where(&c), c.Compactions, term.Clip(c.Error, 200)))
		}
	}
	for _, c := range r.Below(least) {
		if c.Literal < least.Literal {
			bad = append(bad, fmt.Sprintf("%s keeps %.3f, below --min-survival %g", where(&c), c.Literal, least.Literal))
		}
		if c.Grounded < least.Grounded {
			bad = append(bad, fmt.Sprintf("%s keeps %.3f grounded, below --min-grounded %g", where(&c), c.Grounded, least.Grounded))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return errors.New(strings.Join(bad, "\n  "))
}

// where names a cell.
func where(c *eval.Cell) string {
	text := fmt.Sprintf("%s on %s at %s", c.Contender, c.Set, c.Budget)
	if c.Chain > 1 {
		text += fmt.Sprintf(", chain of %d (%s)", c.Chain, c.Growth)
	}
	return text
}
