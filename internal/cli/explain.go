package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

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
deferred or overridden, and why. Admissions and compactions of the thread are in
between, where they happened.

RUN is the id of a run, as in the report of mortise run, or its beginning. Without
it the newest runs are listed.

Records are written by mortise run, serve and proxy, to the store or record.store of the config,
or to a file in the user's state folder. They hold names, sizes and reasons, and no messages.`

// maxListed is how many runs are listed.
const maxListed = 20

func newExplain(s Streams) *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain [RUN]",
		Short: "Print the decisions of a run, with their makers and reasons",
		Long:  explainLong,
		Example: `  mortise explain
  mortise explain 01a1fdc0-c87d --plugin guard
  mortise explain 01a1fdc0-c87d --output json | jq .entries`,
		Args: takesUpToOne("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return explain(cmd.Context(), s, strings.Join(args, ""), o)
		},
	}
	f := cmd.Flags()
	configFlag(f, &o.config, ", if there is one")
	outputFlag(f, &o.output, "table or json")
	f.StringVar(&o.store, "store", "", "the SQLite file, nats:// or postgres:// URL of the records, as for mortise run (overrides MORTISE_RECORD_STORE and the config)")
	f.StringVar(&o.plugin, "plugin", "", "only what this plugin did")
	f.BoolVar(&o.all, "all", false, "in the table, also hooks that had nothing to say")
	return cmd
}

// explain is mortise explain.
func explain(ctx context.Context, s Streams, run string, o explainOptions) error {
	h, path, err := openRecords(ctx, s.links, o)
	if err != nil {
		return with(ExitConfig, err)
	}
	defer h.close(ctx)
	records := thread.RecordsOf(h.store)
	if run == "" {
		return listRuns(ctx, s.Out, records, shown(path), o.output)
	}
	found, err := records.Load(ctx, run)
	switch {
	case errors.Is(err, thread.ErrNoRecord) || errors.Is(err, thread.ErrAmbiguous):
		return notFound(fmt.Errorf("%s: %w", located(path), err))
	case err != nil:
		return with(ExitSession, err)
	}
	found.Entries = list(only(found.Entries, o.plugin))
	if o.output == "json" {
		return writeJSON(s.Out, struct {
			Schema string `json:"schema"`
			RunID  string `json:"run_id"`
			*thread.Record
		}{"mortise.explain.v1", found.ID(), found})
	}
	t := newTable(s.Out)
	explainTable(t, found, o.all)
	return t.end()
}

// openRecords opens the store of the records, and returns its name.
func openRecords(ctx context.Context, links Links, o explainOptions) (h *home, path string, err error) {
	var cfg *Config
	if _, err := os.Stat(configName); o.config != "" || err == nil {
		if cfg, err = links.loadConfig(o.config); err != nil {
			return nil, "", err
		}
	}
	if path, _, err = recordStore(o.store, cfg); err != nil {
		return nil, "", err
	}
	h, err = links.openStore(ctx, path, nil, true)
	if errors.Is(err, fs.ErrNotExist) {
		err = notFound(fmt.Errorf("records: there are none: %s is not there; mortise run writes them, --store names where they are", located(path)))
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
		return with(ExitSession, err)
	}
	if format == "json" {
		starts := make([]thread.RunStart, len(known))
		for i := range known {
			starts[i] = known[i].Start
		}
		return writeJSON(out, struct {
			Schema string            `json:"schema"`
			Store  string            `json:"store"`
			Runs   []thread.RunStart `json:"runs"`
		}{"mortise.runs.v1", path, starts})
	}
	t := newTable(out)
	t.row("newest runs in %s", path)
	for _, k := range known {
		t.row("  %s\t%s\t%s\t%s", k.ID, k.Start.At.Format(time.DateTime), plain(k.Start.Run.ThreadID, 36), plain(k.Start.Source, 60))
	}
	return t.end()
}

func writeJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// plain makes text of a file fit for a terminal: one line, bounded, and without
// control characters.
func plain(s string, limit int) string {
	return clip(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) {
			return ' '
		}
		return c
	}, s), limit)
}
