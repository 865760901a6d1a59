package cli

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/thread"
)

// OpenTasks opens the tasks of a folder and returns their manager, the tools of a
// thread, and how to close it.
func OpenTasks(ctx context.Context, l Links, dir, id string, own agent.Tools) (*background.Manager, agent.Tools, func(context.Context) error, error) {
	d, err := openTasks(ctx, &Config{links: l, Tasks: TasksConfig{Dir: dir}}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, nil, err
	}
	tools, err := d.tools(id, own, func(string) {})
	return d.Manager, tools, d.close, err
}

// Lock takes what is at a path for this process.
func Lock(path string) (io.Closer, error) { return lock(path) }

// HooksRun returns an error on systems on which hooks do not run.
func HooksRun(system string) error { return hooksRun(system) }

// EntryWords is what explain prints of a decision.
func EntryWords(e *thread.Decision) []string { return words(e) }

// SameMessage reports whether a message of a stored log is a recorded one.
func SameMessage(recorded, kept *abi.Message) bool { return same(recorded, kept) }

// PrintRuns prints the sum of runs.
func PrintRuns(r RunsReport) string {
	var out strings.Builder
	t := &table{tw: tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)}
	(&Report{Runs: r}).runTable(t)
	if err := t.end(); err != nil {
		return err.Error()
	}
	return out.String()
}

// LiveLines draws positions on a terminal whose width is that of each, and then says one line.
func LiveLines(out io.Writer, widths []int, last string) {
	p := newProgress(out, true)
	width := 0
	p.out, p.live, p.size = out, true, func() int { return width }
	for i, w := range widths {
		width, p.drawn = w, time.Time{}
		p.position("thread", i, len(widths), 1000, 1000)
		p.event(agent.Event{})
	}
	p.say("%s", last)
}

// Wrap writes text as to a terminal of that width.
func Wrap(out io.Writer, width int, text string) error {
	_, err := io.WriteString(&wrapping{out: out, width: width}, text)
	return err
}

// Worded is an error in the words of the config.
func Worded(err error) string { return worded(err) }

// NewOTLP makes the client for spans that an environment describes, or nil.
func NewOTLP(getenv func(string) string, log io.Writer) (otlptrace.Client, error) {
	o, err := newOTLP(getenv, slog.New(slog.NewTextHandler(log, nil)))
	if o == nil {
		return nil, err
	}
	return o, err
}

// Problems decodes a config and returns all that is wrong with it.
func Problems(l Links, data []byte) (*Config, []Problem) { return l.problemsOf(data) }
