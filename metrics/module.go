package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/host"
)

// modules reads the counters of modules when it is collected.
type modules struct {
	stats    func() map[string]host.Stats
	columns  []column
	replaced *prometheus.Desc
}

// column is one counter or gauge of a module.
type column struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*host.Stats) float64
}

func newModules(stats func() map[string]host.Stats) *modules {
	m := &modules{stats: stats, replaced: desc("module_replaced_total", "Instances that were not used again, by reason.", "module", "reason")}
	add := func(kind prometheus.ValueType, name, help string, of func(*host.Stats) float64) {
		m.columns = append(m.columns, column{desc("module_"+name, help, "module"), kind, of})
	}
	counts := func(name, help string, of func(*host.Stats) int64) {
		add(prometheus.CounterValue, name, help, func(s *host.Stats) float64 { return float64(of(s)) })
	}
	counts("calls_total", "Calls of a module.", func(s *host.Stats) int64 { return s.Calls })
	counts("failures_total", "Calls that did not succeed.", func(s *host.Stats) int64 { return s.Failures })
	counts("traps_total", "Calls that trapped.", func(s *host.Stats) int64 { return s.Traps })
	counts("denied_total", "Requests of a module that a grant or its quota did not allow.", func(s *host.Stats) int64 { return s.Denied })
	counts("late_host_calls_total", "Host calls that returned more than 100 ms after their call was out of time.", func(s *host.Stats) int64 { return s.Late })
	counts("swaps_total", "Versions of a module that took over after the first.", func(s *host.Stats) int64 { return s.Swaps })
	counts("rollbacks_total", "Versions of a module that the host took back.", func(s *host.Stats) int64 { return s.Rollbacks })
	counts("fuel_total", "Fuel that calls used.", func(s *host.Stats) int64 { return s.Fuel })
	add(prometheus.CounterValue, "busy_seconds_total", "Time in instances, estimated.", func(s *host.Stats) float64 { return s.Time.Seconds() })
	add(prometheus.CounterValue, "late_host_call_seconds_total", "How long late host calls continued.",
		func(s *host.Stats) float64 { return s.LateTime.Seconds() })
	add(prometheus.GaugeValue, "instances", "Instances alive.", func(s *host.Stats) float64 { return float64(s.Instances) })
	return m
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

// Describe implements prometheus.Collector.
func (m *modules) Describe(out chan<- *prometheus.Desc) {
	out <- m.replaced
	for _, c := range m.columns {
		out <- c.desc
	}
}

// Collect implements prometheus.Collector.
func (m *modules) Collect(out chan<- prometheus.Metric) {
	for name, s := range m.stats() {
		for _, c := range m.columns {
			out <- prometheus.MustNewConstMetric(c.desc, c.kind, c.of(&s), name)
		}
		for reason, n := range s.ReplacedBy {
			out <- prometheus.MustNewConstMetric(m.replaced, prometheus.CounterValue, float64(n), name, string(reason))
		}
	}
}

// tasks reads the counts of background tasks when it is collected.
type tasks struct {
	stats func() background.Stats
	desc  *prometheus.Desc
}

func newTasks(stats func() background.Stats) *tasks {
	return &tasks{stats, desc("tasks", "Background tasks of this process that have not ended, by state.", "state")}
}

// Describe implements prometheus.Collector.
func (t *tasks) Describe(out chan<- *prometheus.Desc) { out <- t.desc }

// Collect implements prometheus.Collector.
func (t *tasks) Collect(out chan<- prometheus.Metric) {
	s := t.stats()
	out <- prometheus.MustNewConstMetric(t.desc, prometheus.GaugeValue, float64(s.Running), string(background.Running))
	out <- prometheus.MustNewConstMetric(t.desc, prometheus.GaugeValue, float64(s.Queued), string(background.Queued))
}
