package program

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mortise-dev/mortise/proxy"
)

// ProxyMetrics makes metrics of a proxy's report.
type ProxyMetrics struct{ Report func() *proxy.Report }

// Describe implements prometheus.Collector. The metrics are not known before.
func (*ProxyMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *ProxyMetrics) Collect(out chan<- prometheus.Metric) {
	r := c.Report()
	gauge := func(name, help string, v float64, labels ...string) {
		var names, values []string
		for i := 0; i+1 < len(labels); i += 2 {
			names, values = append(names, labels[i]), append(values, labels[i+1])
		}
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), prometheus.GaugeValue, v, values...)
	}
	for what, n := range r.Counts {
		gauge("mortise_proxy_events", "What the proxy did, by kind.", float64(n), "what", what)
	}
	t := &r.Total
	for world, sum := range map[string]float64{
		"paid": t.Paid.Units, "own": t.Own.Units, "machine": t.Machine.Units, "without_compaction": t.Without.Units,
		"with_clients_compaction": t.Compacting.Units, "side": r.Side.Units,
	} {
		gauge("mortise_proxy_cost_units", "Cost in tokens of fresh input, as paid and as it would have been.", sum, "world", world)
	}
	u := t.Paid.Usage
	for kind, n := range map[string]int64{"input": u.Input, "cache_read": u.Read, "cache_write_5m": u.Write5m, "cache_write_1h": u.Write1h, "output": u.Output} {
		gauge("mortise_proxy_tokens", "Tokens that providers counted, by kind.", float64(n), "kind", kind)
	}
	gauge("mortise_proxy_machine_error", "Share by which the cache machine misses what was paid.", t.MachineError)
}
