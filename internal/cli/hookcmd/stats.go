package hookcmd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/hook/daemon"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/term"
)

const hookStatsLong = `Count what the daemons of a profile did: events with their decisions, plugins, times, and what became of
the names of before a compaction.

--textfile writes the counters in Prometheus' text format, for the textfile collector of a node exporter: the
daemon listens nowhere.`

func newHookStats(s command.Streams, o *hookOptions) *cobra.Command {
	var out command.OutputOption
	var textfile string
	cmd := &cobra.Command{
		Use: "stats", Short: "Count events, decisions, times and what could not be done", Long: hookStatsLong, Args: command.TakesNone,
		RunE: func(*cobra.Command, []string) error {
			p, err := o.open()
			if err != nil {
				return err
			}
			p.note(s.Err)
			stats, err := daemon.ReadStats(p.dir)
			if err != nil {
				return exit.With(exit.Session, err)
			}
			if textfile != "" {
				registry := prometheus.NewRegistry()
				registry.MustRegister(&hookCollector{stats: stats})
				return exit.With(exit.Session, prometheus.WriteToTextfile(textfile, registry))
			}
			if out.AsJSON() {
				return term.WriteJSON(s.Out, stats)
			}
			return printHookStats(s, stats)
		},
	}
	out.Bind(cmd.Flags())
	cmd.Flags().StringVar(&textfile, "textfile", "", "write counters to FILE.prom instead of printing")
	return cmd
}

func printHookStats(s command.Streams, stats *daemon.Stats) error {
	t := term.NewTable(s.Out)
	t.Row("agent\tevent\tcount\tdecisions\tunsupported\terrors\tms p50\tp99\tlast")
	for _, e := range stats.Events {
		t.Row("%s\t%s\t%d\t%s\t%s\t%d\t%s\t%s", e.Dialect, e.Event, e.Latency.Count, counts(e.Decisions), counts(e.Unsupported), e.Errors,
			times(&e.Latency), e.Last.Format("2006-01-02 15:04:05"))
	}
	if len(stats.Plugins) > 0 {
		t.Row("\nplugin\tphase\tcalls\tfailed\trefused\tgates\tapplied\tms p50\tp99")
	}
	for _, p := range stats.Plugins {
		t.Row("%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s", p.Plugin, p.Phase, p.Latency.Count, p.Failures, p.Refused, counts(p.Gates), counts(p.Applied), times(&p.Latency))
	}
	if r := &stats.Repair; r.Compactions > 0 {
		t.Row("\nafter %s of the agents: %d tokens given back; of the names that were needed the summary held %d, a note gave back %d, and %d were lost",
			term.Counted(r.Compactions, "compaction"), r.ReturnedTokens, r.InSummary, r.GivenBack, r.Lost)
	}
	return t.End()
}

func times(l *daemon.Latency) string {
	return fmt.Sprintf("<= %g\t<= %g", l.Quantile(.5), l.Quantile(.99))
}

// counts writes counters, sorted by name.
func counts[K ~string](m map[K]int) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s:%d", k, m[k]))
	}
	return strings.Join(out, " ")
}

// hookCollector makes metrics of stats.
type hookCollector struct{ stats *daemon.Stats }

// Describe implements prometheus.Collector. The metrics are not known before.
func (*hookCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *hookCollector) Collect(out chan<- prometheus.Metric) {
	count := func(name, help string, n int, labels ...string) {
		out <- prometheus.MustNewConstMetric(described(name, help, labels), prometheus.CounterValue, float64(n), valuesOf(labels)...)
	}
	for _, e := range c.stats.Events {
		for decision, n := range e.Decisions {
			count("mortise_agent_hook_events_total", "Events of agents' hooks, by what was answered.", n, "agent", e.Dialect, "event", e.Event, "decision", decision)
		}
		for what, n := range e.Unsupported {
			count("mortise_agent_hook_unsupported_total", "Decisions that the agent's hooks cannot express.", n, "agent", e.Dialect, "event", e.Event, "what", what)
		}
		count("mortise_agent_hook_duplicates_total", "Events that came twice and were answered once.", e.Duplicates, "agent", e.Dialect, "event", e.Event)
		count("mortise_agent_hook_errors_total", "Events with an error.", e.Errors, "agent", e.Dialect, "event", e.Event)
		out <- histogram("mortise_agent_hook_duration_seconds", "Time in the daemon.", &e.Latency, "agent", e.Dialect, "event", e.Event)
	}
	for _, p := range c.stats.Plugins {
		at := []string{"plugin", p.Plugin, "phase", p.Phase}
		count("mortise_agent_hook_plugin_failures_total", "Calls of plugins that failed.", p.Failures, at...)
		count("mortise_agent_hook_plugin_refused_total", "Effects of plugins that were refused.", p.Refused, at...)
		out <- histogram("mortise_agent_hook_plugin_duration_seconds", "Time of plugins' calls.", &p.Latency, at...)
	}
	r := &c.stats.Repair
	count("mortise_agent_hook_compactions_total", "Compactions of the agents' own.", r.Compactions)
	count("mortise_agent_hook_returned_tokens_total", "Tokens given back after compactions.", r.ReturnedTokens)
	for from, n := range map[string]int{"summary": r.InSummary, "note": r.GivenBack, "nowhere": r.Lost} {
		count("mortise_agent_hook_needed_names_total", "Names of before a compaction that an agent used after it, by where it could have them from.", n, "from", from)
	}
	count("mortise_agent_hook_failed_loads_total", "Configs that could not be loaded.", c.stats.FailedLoads)
}

func histogram(name, help string, l *daemon.Latency, labels ...string) prometheus.Metric {
	buckets, sum := map[float64]uint64{}, uint64(0)
	for i, bound := range daemon.LatencyBounds() {
		if i < len(l.Buckets) {
			sum += uint64(l.Buckets[i]) //nolint:gosec // a count
		}
		buckets[bound/1000] = sum
	}
	return prometheus.MustNewConstHistogram(described(name, help, labels), uint64(l.Count), l.SumMS/1000, buckets, valuesOf(labels)...) //nolint:gosec // a count
}

func described(name, help string, labels []string) *prometheus.Desc {
	var names []string
	for i := 0; i < len(labels); i += 2 {
		names = append(names, labels[i])
	}
	return prometheus.NewDesc(name, help, names, nil)
}

func valuesOf(labels []string) []string {
	var values []string
	for i := 1; i < len(labels); i += 2 {
		values = append(values, labels[i])
	}
	return values
}
