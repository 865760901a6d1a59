package daemon

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/hook"
)

// StatsSchema names the form of [Stats].
const StatsSchema = "mortise.hook.stats.v1"

// Stats counts what the daemons of a profile did since it was installed. It is not safe for concurrent use.
type Stats struct {
	Schema  string         `json:"schema"`
	Since   time.Time      `json:"since,omitzero"`
	Events  []*EventStats  `json:"events"`
	Plugins []*PluginStats `json:"plugins"`
	Repair  RepairStats    `json:"repair"`
	// FailedLoads counts configs that could not be loaded.
	FailedLoads int `json:"failed_loads"`
}

// Decisions of the policy, which answers when no plugin can be asked in time.
const (
	DecisionOpen   = "policy: open"
	DecisionClosed = "policy: closed"
)

// EventStats is one event of an agent.
type EventStats struct {
	Dialect string `json:"dialect"`
	Event   string `json:"event"`
	// Decisions counts answers by [hook.Record.Decision], [DecisionOpen] and [DecisionClosed].
	Decisions map[string]int `json:"decisions"`
	// Unsupported counts decisions that the agent's hooks cannot express.
	Unsupported map[string]int `json:"unsupported,omitempty"`
	Duplicates  int            `json:"duplicates"`
	Errors      int            `json:"errors"`
	Latency     Latency        `json:"latency"`
	Last        time.Time      `json:"last"`
}

// PluginStats is one plugin at one phase.
type PluginStats struct {
	Plugin   string         `json:"plugin"`
	Phase    string         `json:"phase"`
	Failures int            `json:"failures"`
	Refused  int            `json:"refused"`
	Applied  map[string]int `json:"applied,omitempty"`
	Gates    map[string]int `json:"gates,omitempty"`
	Latency  Latency        `json:"latency"`
}

// RepairStats is what became of names after compactions of the agents: of those that the agent wrote into a call before
// anything showed them again, how many the summary held, how many a note had given back, and how many were in neither.
type RepairStats struct {
	Compactions    int `json:"compactions"`
	ReturnedTokens int `json:"returned_tokens"`
	hook.RepairUse
}

// Latency is a histogram of times.
type Latency struct {
	Count int     `json:"count"`
	SumMS float64 `json:"sum_ms"`
	// Buckets counts times up to each of [LatencyBounds], and beyond the last.
	Buckets []int `json:"buckets"`
}

// LatencyBounds are the upper bounds of the buckets of a [Latency], in milliseconds.
func LatencyBounds() []float64 {
	return []float64{.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000}
}

func (l *Latency) add(ms float64) {
	bounds := LatencyBounds()
	if len(l.Buckets) != len(bounds)+1 {
		l.Buckets = make([]int, len(bounds)+1)
	}
	at := 0
	for at < len(bounds) && ms > bounds[at] {
		at++
	}
	l.Buckets[at]++
	l.Count++
	l.SumMS += ms
}

// Add adds other times.
func (l *Latency) Add(o *Latency) {
	if l.Buckets == nil {
		l.Buckets = make([]int, len(o.Buckets))
	}
	for i := range min(len(l.Buckets), len(o.Buckets)) {
		l.Buckets[i] += o.Buckets[i]
	}
	l.Count += o.Count
	l.SumMS += o.SumMS
}

// Quantile is the bound of the bucket that a share of the times does not exceed, in milliseconds; of the last bucket it is the
// bound below. It is 0 without times.
func (l *Latency) Quantile(q float64) float64 {
	bounds, seen := LatencyBounds(), 0
	for i, n := range l.Buckets {
		if seen += n; n > 0 && float64(seen) >= q*float64(l.Count) {
			return bounds[min(i, len(bounds)-1)]
		}
	}
	return 0
}

// add counts a record. Those of a probe do not count.
func (s *Stats) add(r *hook.Record) {
	if r.Tool == hook.ProbeTool {
		return
	}
	if s.Since.IsZero() || r.At.Before(s.Since) {
		s.Since = r.At
	}
	if r.Dialect == "" { // of the daemon itself
		s.FailedLoads++
		return
	}
	e := s.event(r.Dialect, r.Event)
	if r.At.After(e.Last) {
		e.Last = r.At
	}
	if r.Duplicate {
		e.Duplicates++
		return
	}
	e.Decisions[r.Decision]++
	for _, what := range r.Unsupported {
		if e.Unsupported == nil {
			e.Unsupported = map[string]int{}
		}
		e.Unsupported[what]++
	}
	if r.Error != "" {
		e.Errors++
	}
	e.Latency.add(r.MS)
	for i := range r.Plugins {
		s.plugin(&r.Plugins[i])
	}
	s.Repair.ReturnedTokens += r.Returned
	if r.Compacted {
		s.Repair.Compactions++
	}
	if r.Repair != nil {
		s.Repair.Add(*r.Repair)
	}
}

func (s *Stats) event(dialect, event string) *EventStats {
	for _, e := range s.Events {
		if e.Dialect == dialect && e.Event == event {
			return e
		}
	}
	e := &EventStats{Dialect: dialect, Event: event, Decisions: map[string]int{}}
	s.Events = append(s.Events, e)
	return e
}

func (s *Stats) plugin(c *hook.PluginCall) {
	var p *PluginStats
	for _, known := range s.Plugins {
		if known.Plugin == c.Plugin && known.Phase == string(c.Phase) {
			p = known
		}
	}
	if p == nil {
		p = &PluginStats{Plugin: c.Plugin, Phase: string(c.Phase), Applied: map[string]int{}, Gates: map[string]int{}}
		s.Plugins = append(s.Plugins, p)
	}
	if c.Failed {
		p.Failures++
	}
	p.Refused += c.Refused
	for _, what := range c.Applied {
		p.Applied[what]++
	}
	if c.Gate != "" {
		p.Gates[string(c.Gate)]++
	}
	p.Latency.add(c.MS)
}

// maxRecordLine bounds a line of the record that is read.
const maxRecordLine = 64 << 20

// addFile counts the records of a file, if it is there. Lines that are not understood are skipped.
func (s *Stats) addFile(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("daemon: record: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxRecordLine)
	for lines.Scan() {
		r := &hook.Record{}
		if json.Unmarshal(lines.Bytes(), r) == nil {
			s.add(r)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("daemon: record: %w", err)
	}
	return nil
}

// ReadStats sums up what the daemons of a profile did.
func ReadStats(dir string) (*Stats, error) {
	for {
		t, older, err := readTotals(dir)
		if err != nil {
			return nil, err
		}
		through := t.Through
		for _, n := range append(older, 0) {
			if err := t.addFile(aside(dir, n)); err != nil {
				return nil, err
			}
		}
		again, now, err := readTotals(dir)
		if err != nil {
			return nil, err
		}
		if again.Through == through && slices.Equal(now, older) {
			return &t.Stats, nil
		} // else a daemon moved records meanwhile
	}
}

// totals are the stats of records that are gone.
type totals struct {
	Stats

	// Through is the number of the last file that is counted in the stats. It may be there still.
	Through int `json:"through"`
}

// aside is the file of records with a number, the current one for 0.
func aside(dir string, number int) string {
	if number == 0 {
		return filepath.Join(dir, RecordFile)
	}
	return filepath.Join(dir, RecordFile+"."+strconv.Itoa(number))
}

// readTotals also returns the numbers of the files that the totals do not count, sorted.
func readTotals(dir string) (t *totals, older []int, err error) {
	t = &totals{}
	data, err := os.ReadFile(filepath.Join(dir, totalsFile))
	if err == nil {
		err = json.Unmarshal(data, t)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("daemon: totals: %w", err)
	}
	t.Schema = StatsSchema
	older, err = numbers(dir)
	return t, slices.DeleteFunc(older, func(n int) bool { return n <= t.Through }), err
}

// numbers are those of all files of records that were moved aside, sorted.
func numbers(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("daemon: record: %w", err)
	}
	var out []int
	for _, e := range entries {
		if text, ok := strings.CutPrefix(e.Name(), RecordFile+"."); ok {
			if n, err := strconv.Atoi(text); err == nil && n > 0 {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// rotate adds the records that were moved aside earlier to the totals, deletes them, and moves the current ones aside. The totals
// name the last file that they count, so that a process that is killed in between counts none twice.
func rotate(dir string) error {
	t, older, err := readTotals(dir)
	if err != nil {
		return err
	}
	for _, n := range older {
		if err := t.addFile(aside(dir, n)); err != nil {
			return err
		}
		t.Through = n
	}
	if len(older) > 0 {
		data, err := json.Marshal(t)
		if err != nil {
			return fmt.Errorf("daemon: totals: %w", err)
		}
		if err := hook.WriteFile(filepath.Join(dir, totalsFile), data); err != nil {
			return err
		}
	}
	all, err := numbers(dir)
	if err != nil {
		return err
	}
	for _, n := range all {
		if err := os.Remove(aside(dir, n)); err != nil {
			return err
		}
	}
	return os.Rename(aside(dir, 0), aside(dir, t.Through+1))
}
