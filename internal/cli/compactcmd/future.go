package compactcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/eval/future"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/llm/transcript"
)

// compactFuture is mortise compact eval --future.
func compactFuture(ctx context.Context, s command.Streams, paths []string, o evalOptions) error {
	start := time.Now()
	cfg, err := o.futureConfig()
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	p := &evalProgress{Progress: term.NewProgress(s.Err, o.quiet)}
	defer p.Close()
	out := &FutureReport{}
	if cfg.Windows, err = o.windows(paths, s.In, out, p); errors.Is(err, fs.ErrNotExist) {
		return exit.NotFound(err)
	} else if err != nil {
		return exit.With(exit.Session, err)
	}
	l, err := newPolicyLoader(o, p)
	if err != nil {
		return exit.With(exit.Config, err)
	}
	defer l.close(ctx)
	l.rules, l.masks = future.Baselines(), true
	if cfg.Contenders, err = l.contenders(ctx, o.policies, out); err != nil {
		return err
	}
	cfg.Progress = p.step
	report, err := future.Run(ctx, cfg)
	switch {
	case ctx.Err() != nil:
		return exit.With(exit.Interrupted, errors.New("interrupted; there is no report"))
	case errors.Is(err, future.ErrNoWindows):
		return exit.With(exit.Session, fmt.Errorf("sessions: %w; at least %d are needed in a session: %s", err, leastFacts, several(out.LeftOut)))
	case err != nil:
		return exit.With(exit.Run, err)
	}
	p.Close()
	out.Report = *report
	out.WallMS = time.Since(start).Milliseconds()
	if err := out.write(s.Out, o.output); err != nil {
		return exit.With(exit.Run, fmt.Errorf("report: %w", err))
	}
	return nil
}

// leastFacts is how many facts a window needs.
const leastFacts = 8

// futureConfig reads the flags, and refuses those of the other measure.
func (o *evalOptions) futureConfig() (future.Config, error) {
	c := future.Config{Least: leastFacts, Chains: []int{1, 8}}
	for _, flag := range []string{"probes", "budgets", "growth", "plot", "min-survival", "min-grounded"} {
		if o.set(flag) {
			return c, fmt.Errorf("--%s does not fit --future, which has --sizes, --chain and --policies", flag)
		}
	}
	for _, s := range o.sizes {
		size, err := future.ParseSize(strings.TrimSpace(s))
		if err != nil {
			return c, fmt.Errorf("--sizes: %w", err)
		}
		c.Sizes = append(c.Sizes, size)
	}
	if !o.set("chain") {
		return c, nil
	}
	chains, err := o.lengths()
	c.Chains = []int{1}
	for _, n := range chains {
		if !slices.Contains(c.Chains, n) {
			c.Chains = append(c.Chains, n)
		}
	}
	return c, err
}

// windows finds the compactions of the sessions. A file that is named and holds
// none is an error; one of a folder is left out.
func (o *evalOptions) windows(paths []string, in io.Reader, report *FutureReport, p *evalProgress) ([]future.Window, error) {
	var out []future.Window
	for _, path := range paths {
		list, err := o.logs(path, in, &report.Measured, p)
		if err != nil {
			return nil, err
		}
		for _, l := range list {
			w, err := report.window(l)
			switch {
			case err == nil:
				out = append(out, w)
			case len(paths) == 1 && len(list) == 1:
				return nil, fmt.Errorf("session %s: %w", l.name, err)
			default:
				report.leftOut(p, "%s: %v", l.name, err)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("sessions: no compaction to measure: %s", several(report.LeftOut))
	}
	return out, nil
}

// window takes the first compaction of a log, or reports what was found instead.
func (r *FutureReport) window(l sessionLog) (future.Window, error) {
	found, unrecorded, messages := 0, 0, 0
	for i := range l.file.Conversations {
		c := &l.file.Conversations[i]
		messages += len(c.Entries)
		found += len(c.Compactions)
		for _, k := range c.Compactions {
			if k.Summary == "" {
				unrecorded++
			}
		}
		if w, ok := future.First(futureSession(l.name, c)); ok {
			r.Compactions += len(c.Compactions)
			if len(w.Needed) < leastFacts {
				return w, fmt.Errorf("only %d facts are needed after the first of %d compactions, at least %d are required", len(w.Needed), found, leastFacts)
			}
			return w, nil
		}
	}
	switch {
	case found == 0:
		return future.Window{}, fmt.Errorf("no compaction in it; found are %d messages in the format %s. Compactions are known in logs of Claude Code, Codex, pi, OpenCode and OpenHands",
			messages, l.file.Format)
	case unrecorded > 0:
		return future.Window{}, fmt.Errorf("the first of %d compactions has no summary in the log, which is encrypted or left out", found)
	}
	return future.Window{}, fmt.Errorf("nothing continues from the first of %d compactions", found)
}

// futureSession marks failed calls, which a message alone does not show.
func futureSession(name string, c *transcript.Conversation) future.Session {
	s := future.Session{Name: name, Messages: c.Messages(), Partial: c.Partial}
	for i := range c.Entries {
		s.Times = append(s.Times, c.Entries[i].At)
		if c.Entries[i].Message.Role == abi.RoleTool && c.Entries[i].Status == abi.ToolError {
			s.Messages[i].Metadata = map[string]any{abi.MetadataIsError: true}
		}
	}
	for _, k := range c.Compactions {
		s.Compactions = append(s.Compactions, future.Compaction{At: k.At, Summary: k.Summary, Continued: k.Continued})
	}
	return s
}
