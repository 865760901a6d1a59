package explaincmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/thread"
)

// explainOptions are the flags of mortise explain.
type explainOptions struct {
	config string
	output string
	store  string
	plugin string
	all    bool
}

const explainLong = `Print the decision record of a run: which plugin was called when, how much of the
conversation it saw, what it answered, and what of that was applied, refused,
deferred or overridden, and why. What was decided about calls that waited, by whom and
why, and admissions and compactions of the thread are in between, where they happened.

RUN is the id of a run, as in the report of mortise run, or its beginning. Without
it the newest runs are listed.

Records are written by mortise run, serve and proxy, to the store or record.store of the config,
or to a file in the user's state folder. They hold names, sizes and reasons, and no messages.`

// maxListed is how many runs are listed.
const maxListed = 20

// New makes mortise explain.
func New(s command.Streams) *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain [RUN]",
		Short: "Print the decisions of a run, with their makers and reasons",
		Long:  explainLong,
		Example: `  mortise explain
  mortise explain 01a1fdc0-c87d --plugin guard
  mortise explain 01a1fdc0-c87d --output json | jq .entries`,
		Args: command.TakesUpToOne("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return explain(cmd.Context(), s, strings.Join(args, ""), o)
		},
	}
	f := cmd.Flags()
	command.ConfigFlag(f, &o.config, ", if there is one")
	command.OutputFlag(f, &o.output, "table or json")
	f.StringVar(&o.store, "store", "", "the SQLite file, nats:// or postgres:// URL of the records, as for mortise run (overrides MORTISE_RECORD_STORE and the config)")
	f.StringVar(&o.plugin, "plugin", "", "only what this plugin did")
	f.BoolVar(&o.all, "all", false, "in the table, also hooks that had nothing to say")
	return cmd
}

// explain is mortise explain.
func explain(ctx context.Context, s command.Streams, run string, o explainOptions) error {
	h, path, err := openRecords(ctx, s.Links, o)
	if err != nil {
		return exit.With(exit.Config, err)
	}
	defer h.Close(ctx)
	records := thread.RecordsOf(h.Store)
	if run == "" {
		return listRuns(ctx, s.Out, records, config.Shown(path), o.output)
	}
	found, err := records.Load(ctx, run)
	switch {
	case errors.Is(err, thread.ErrNoRecord) || errors.Is(err, thread.ErrAmbiguous):
		return exit.NotFound(fmt.Errorf("%s: %w", config.Located(path), err))
	case err != nil:
		return exit.With(exit.Session, err)
	}
	found.Entries = term.List(only(found.Entries, o.plugin))
	if o.output == "json" {
		return term.WriteJSON(s.Out, struct {
			Schema string `json:"schema"`
			RunID  string `json:"run_id"`
			*thread.Record
		}{"mortise.explain.v1", found.ID(), found})
	}
	t := term.NewTable(s.Out)
	explainTable(t, found, o.all)
	return t.End()
}

// openRecords opens the store of the records, and returns its name.
func openRecords(ctx context.Context, links program.Links, o explainOptions) (h *program.Home, path string, err error) {
	cfg, err := links.LoadOr(o.config, "version: 1")
	if err != nil {
		return nil, "", err
	}
	if path, _, err = config.RecordStore(o.store, cfg.Config); err != nil {
		return nil, "", err
	}
	h, err = links.Open(ctx, path, nil, true)
	if errors.Is(err, fs.ErrNotExist) {
		err = exit.NotFound(fmt.Errorf("records: there are none: %s is not there; mortise run writes them, --store names where they are", config.Located(path)))
	}
	return h, path, err
}

// only leaves out what others did.
func only(entries []thread.Decision, plugin string) []thread.Decision {
	if plugin == "" {
		return entries
	}
	var out []thread.Decision
	for _, e := range entries {
		if e.Plugin == plugin {
			out = append(out, e)
		}
	}
	return out
}

func listRuns(ctx context.Context, out io.Writer, records *thread.Records, path, format string) error {
	known, err := records.List(ctx, maxListed)
	if err != nil {
		return exit.With(exit.Session, err)
	}
	if format == "json" {
		starts := make([]thread.RunStart, len(known))
		for i := range known {
			starts[i] = known[i].Start
		}
		return term.WriteJSON(out, struct {
			Schema string            `json:"schema"`
			Store  string            `json:"store"`
			Runs   []thread.RunStart `json:"runs"`
		}{"mortise.runs.v1", path, starts})
	}
	t := term.NewTable(out)
	if len(known) == 0 {
		t.Row("no runs in %s: none has a record yet", path)
		return t.End()
	}
	t.Row("newest runs in %s", path)
	for _, k := range known {
		t.Row("  %s\t%s\t%s\t%s", k.ID, k.Start.At.Format(time.DateTime), term.Plain(k.Start.Run.ThreadID, 36), term.Plain(k.Start.Source, 60))
	}
	return t.End()
}
