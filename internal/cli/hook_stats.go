package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/daemon"
)

// maxRecordLine bounds a line of the record that is read.
const maxRecordLine = 64 << 20

// hookRecords reads the record of a profile, the oldest first. Lines that are not understood are skipped.
func (p *hookProfile) records(visit func(*hook.Record)) error {
	for _, name := range []string{daemon.RecordFile + ".1", daemon.RecordFile} {
		f, err := os.Open(filepath.Join(p.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return with(ExitSession, err)
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, maxRecordLine)
		for lines.Scan() {
			r := &hook.Record{}
			if json.Unmarshal(lines.Bytes(), r) == nil {
				visit(r)
			}
		}
		_ = f.Close()
		if err := lines.Err(); err != nil {
			return with(ExitSession, err)
		}
	}
	return nil
}

// eventStats sums the events of one kind up.
type eventStats struct {
	Dialect   string         `json:"dialect"`
	Event     string         `json:"event"`
	Count     int            `json:"count"`
	Decisions map[string]int `json:"decisions"`
	// Unsupported counts decisions that the agent's hooks cannot express.
	Unsupported map[string]int `json:"unsupported,omitempty"`
	Duplicates  int            `json:"duplicates,omitempty"`
	Errors      int            `json:"errors,omitempty"`
	// Returned are tokens that were given back after compactions.
	Returned int       `json:"returned_tokens,omitempty"`
	P50MS    float64   `json:"p50_ms"`
	P99MS    float64   `json:"p99_ms"`
	Last     time.Time `json:"last"`

	ms []float64
}

func (p *hookProfile) stats() ([]*eventStats, error) {
	byEvent := map[[2]string]*eventStats{}
	var out []*eventStats
	err := p.records(func(r *hook.Record) {
		key := [2]string{r.Dialect, r.Event}
		s := byEvent[key]
		if s == nil {
			s = &eventStats{Dialect: r.Dialect, Event: r.Event, Decisions: map[string]int{}, Unsupported: map[string]int{}}
			byEvent[key] = s
			out = append(out, s)
		}
		s.Last = r.At
		if r.Duplicate {
			s.Duplicates++
			return
		}
		s.Count++
		s.Decisions[r.Decision]++
		for _, u := range r.Unsupported {
			s.Unsupported[u]++
		}
		if r.Error != "" {
			s.Errors++
		}
		s.Returned += r.Returned
		s.ms = append(s.ms, r.MS)
	})
	for _, s := range out {
		slices.Sort(s.ms)
		if len(s.ms) > 0 {
			s.P50MS, s.P99MS = s.ms[len(s.ms)/2], s.ms[len(s.ms)*99/100]
		}
	}
	return out, err
}

func newHookStats(s Streams, o *hookOptions) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "stats", Short: "Count events, decisions and what could not be done", Args: takesNone,
		RunE: func(*cobra.Command, []string) error {
			p, err := o.open()
			if err != nil {
				return err
			}
			stats, err := p.stats()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(s.Out, list(stats))
			}
			t := newTable(s.Out)
			t.row("agent\tevent\tcount\tdecisions\tunsupported\tms p50\tp99\tlast")
			for _, e := range stats {
				t.row("%s\t%s\t%d\t%s\t%s\t%.1f\t%.1f\t%s", e.Dialect, e.Event, e.Count, fmt.Sprint(e.Decisions)[3:], fmt.Sprint(e.Unsupported)[3:],
					e.P50MS, e.P99MS, e.Last.Format("2006-01-02 15:04:05"))
			}
			return t.end()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
