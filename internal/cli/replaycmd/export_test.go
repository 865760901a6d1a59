package replaycmd

import (
	"context"
	"log/slog"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/internal/term"
)

// OpenTasks opens the tasks of a folder and returns their manager, the tools of a
// thread, and how to close it.
func OpenTasks(
	ctx context.Context, open func(context.Context, string, bool, *slog.Logger) (program.Store, error), dir, id string, own agent.Tools,
) (*background.Manager, agent.Tools, func(context.Context) error, error) {
	cfg := program.Links{OpenStore: open}.With(&config.Config{Tasks: config.TasksConfig{Dir: dir}})
	d, err := openTasks(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, nil, err
	}
	tools, err := d.tools(id, own, func(string) {})
	return d.Manager, tools, d.close, err
}

// SameMessage reports whether a message of a stored log is a recorded one.
func SameMessage(recorded, kept *abi.Message) bool { return same(recorded, kept) }

// PrintRuns prints the sum of runs.
func PrintRuns(r RunsReport) string {
	var out strings.Builder
	t := term.NewTable(&out)
	(&Report{Runs: r}).runTable(t)
	if err := t.End(); err != nil {
		return err.Error()
	}
	return out.String()
}

// PrintGates prints calls that gates decided, as a run reports them.
func PrintGates(list ...GateReport) string {
	c := newCollector()
	for _, g := range list {
		c.gate(g)
	}
	var out strings.Builder
	t := term.NewTable(&out)
	c.report.changeTable(t)
	if err := t.End(); err != nil {
		return err.Error()
	}
	return out.String()
}
